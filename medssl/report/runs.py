"""Reads a run folder back: what was trained, on which cases, how it went and how well it did."""

import json
import math
from pathlib import Path
from typing import Any

from medssl.core.csv_files import read_rows
from medssl.core.errors import DataError
from medssl.report.run import PerCaseRow, Run, Task
from medssl.report.tasks import task_of

NEEDED_FACTS = ("name", "method", "dataset", "labelled", "seed", "status")
TEXT_COLUMNS = ("case", "structure", "empty", "label", "predicted")


def load_run(path: str | Path, evaluation_name: str = "evaluation") -> Run:
    """The run in a folder, finished or not.

    Raises DataError where the folder is not a run, or one of its files is damaged, and ConfigError where the package
    is not installed that knows the run's task. Values of per_case.csv become floats (NaN where blank); case, structure
    and empty stay text. evaluation_name: the folder in it of the evaluation to read, that of the test cases by default.
    """
    folder = Path(path)
    facts_file = folder / "run.json"
    if not facts_file.is_file():
        raise DataError(
            f"{folder}: not a run folder, run.json is missing (found: {_content_text(folder)}). "
            "Give the folder a training wrote."
        )
    facts = _read_object(facts_file)
    missing = [key for key in NEEDED_FACTS if key not in facts]
    if missing:
        raise DataError(f"{facts_file}: {', '.join(missing)} missing. Was it written by another program?")
    evaluation, task = folder / evaluation_name, task_of(facts, facts_file)
    return Run(
        folder=folder,
        task=task,
        facts=facts,
        split=_read_object(folder / "split.json"),
        history=_read_history(folder / "history.jsonl"),
        per_case=_read_cases(evaluation, task),
        settings=_read_object(evaluation / "settings.json"),
        measured=_read_object(evaluation / "metrics.json"),
    )


def _content_text(folder: Path) -> str:
    if not folder.is_dir():
        return "no such folder"
    return ", ".join(sorted(path.name for path in folder.iterdir())[:5]) or "nothing"


def _read_object(file: Path) -> dict[str, Any]:
    """The JSON object in a file; empty where there is no file."""
    if not file.is_file():
        return {}
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{file}: not JSON ({error}). Restore it, or run the training again.") from error
    if not isinstance(value, dict):
        raise DataError(f"{file}: holds a {type(value).__name__}, expected an object.")
    return value


def _read_history(file: Path) -> list[dict[str, Any]]:
    """The records of history.jsonl."""
    if not file.is_file():
        return []
    lines = [line for line in file.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    records = []
    for number, line in enumerate(lines, start=1):
        try:
            records.append(json.loads(line))
        except ValueError as error:
            if number == len(lines):  # a killed run leaves its last line half written
                break
            raise DataError(f"{file}, record {number}: not JSON ({error}). Remove the line.") from error
    return records


def _read_cases(evaluation: Path, task: Task) -> list[PerCaseRow]:
    """The rows of the task's table; a `sample` is a case of one nameless structure."""
    rows = []
    for row, where in read_rows(evaluation / task.table, task.needed, "Evaluate again."):
        named = {"case": row.pop("sample"), "structure": ""} if "sample" in row else {}
        rows.append(_typed_row({**named, **row}, where))
    return rows


def _typed_row(row: dict[str, Any], where: str) -> PerCaseRow:
    """A CSV row with its numbers as floats."""
    try:
        return {key: (value or "") if key in TEXT_COLUMNS else _number(value) for key, value in row.items()}
    except (TypeError, ValueError) as error:
        raise DataError(f"{where}: {error}. Evaluate again, or mend the row.") from error


def _number(text: str | None) -> float:
    """A float, NaN for a blank."""
    return float(text) if text else math.nan
