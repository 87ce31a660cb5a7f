"""A run folder, read back: what was trained, on which cases, how it went and how well it did."""

import csv
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from medssl.core.errors import DataError

NEEDED_FACTS = ("name", "method", "dataset", "labelled", "seed", "status")
TEXT_COLUMNS = ("case", "structure", "empty", "label", "predicted")


@dataclass(frozen=True)
class Task:
    """What runs of one kind leave: the table in evaluation/ and its needed columns, the metric they are compared by
    (main), the one they are validated by, and what their cases are called."""

    table: str
    needed: tuple[str, ...]
    main: str
    validated: str
    cases: str


TASKS = {
    "segmentation": Task("per_case.csv", ("case", "structure", "dice"), "dice", "dice", "cases"),
    "classification": Task(
        "per_sample.csv",
        ("sample", "label", "predicted", "uncertainty_nats", "error"),
        "error",
        "accuracy",
        "pictures",
    ),
    "scenes": Task("per_case.csv", ("case", "structure", "miou", "pavpu"), "miou", "miou", "images"),
}

PerCaseRow = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """One run folder. Every part but `facts` (run.json) is empty where its file is not there (yet).

    per_case: the rows of per_case.csv; of a classification those of per_sample.csv, each picture a case of one nameless
    structure. measured: what was measured of all pictures together (metrics.json).
    """

    folder: Path
    facts: dict[str, Any]
    split: dict[str, Any]
    history: list[dict[str, Any]]
    per_case: list[PerCaseRow]
    settings: dict[str, Any]
    measured: dict[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """'segmentation' (of scans), 'classification' (of pictures) or 'scenes' (their segmentation)."""
        return str(self.facts.get("task", "segmentation"))

    @property
    def task(self) -> Task:
        return TASKS[self.kind]

    @property
    def status(self) -> str:
        """'running', 'first stage finished', 'finished' or 'failed'."""
        return str(self.facts["status"])

    @property
    def paper_crop(self) -> bool:
        """True where regions were centred with the labels, so that the numbers leak ground truth."""
        return bool(self.facts.get("paper_crop", False) or self.settings.get("paper_crop", False))

    @property
    def structures(self) -> dict[int, str]:
        """Class number -> name, without the background."""
        named = self.facts.get("structures") or {"1": "structure"}
        return {int(number): str(name) for number, name in named.items()}

    def records(self, kind: str) -> list[dict[str, Any]]:
        """The history of one kind ('step', 'epoch', 'validation') in step order.

        A step that was repeated after a resume counts once, with its last values.
        """
        by_step = {
            record.get("step", record.get("epoch", 0)): record for record in self.history if record.get("kind") == kind
        }
        return [by_step[step] for step in sorted(by_step)]


def load_run(path: str | Path) -> Run:
    """The run in a folder, finished or not.

    Raises DataError where the folder is not a run, or one of its files is damaged. Values of per_case.csv become
    floats (NaN where blank); case, structure and empty stay text.
    """
    folder = Path(path)
    facts_file = folder / "run.json"
    if not facts_file.is_file():
        found = (
            ", ".join(sorted(p.name for p in folder.iterdir())[:5]) or "nothing"
            if folder.is_dir()
            else "no such folder"
        )
        raise DataError(
            f"{folder}: not a run folder, run.json is missing (found: {found}). Give the folder a training wrote."
        )
    facts = _read_object(facts_file)
    missing = [key for key in NEEDED_FACTS if key not in facts]
    if missing:
        raise DataError(f"{facts_file}: {', '.join(missing)} missing. Was it written by another program?")
    evaluation = folder / "evaluation"
    if facts.get("task", "segmentation") not in TASKS:
        raise DataError(f"{facts_file}: task '{facts['task']}' is unknown. Was it written by a newer medssl?")
    return Run(
        folder=folder,
        facts=facts,
        split=_read_object(folder / "split.json"),
        history=_read_history(folder / "history.jsonl"),
        per_case=_read_cases(evaluation, TASKS[facts.get("task", "segmentation")]),
        settings=_read_object(evaluation / "settings.json"),
        measured=_read_object(evaluation / "metrics.json"),
    )


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
    for row, where in _rows(evaluation / task.table, task.needed):
        named = {"case": row.pop("sample"), "structure": ""} if "sample" in row else {}
        rows.append(_typed_row({**named, **row}, where))
    return rows


def _rows(file: Path, needed: Sequence[str]) -> Iterator[tuple[dict[str, Any], str]]:
    """The rows of a CSV file as text, each with where it stands; none where there is no file."""
    if not file.is_file():
        return
    with file.open(newline="", encoding="utf-8") as stream:
        reader = csv.DictReader(stream)
        missing = [column for column in needed if column not in (reader.fieldnames or ())]
        if missing:
            raise DataError(f"{file}: column {', '.join(missing)} missing, found {reader.fieldnames}. Evaluate again.")
        for row in reader:
            yield row, f"{file}, line {reader.line_num}"


def _typed_row(row: dict[str, Any], where: str) -> PerCaseRow:
    """A CSV row with its numbers as floats."""
    try:
        return {key: (value or "") if key in TEXT_COLUMNS else _number(value) for key, value in row.items()}
    except (TypeError, ValueError) as error:
        raise DataError(f"{where}: {error}. Evaluate again, or mend the row.") from error


def _number(text: str | None) -> float:
    """A float, NaN for a blank."""
    return float(text) if text else math.nan
