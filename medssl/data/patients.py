"""Who is the same person: what patients.csv says, and a warning where only the names of scans say it."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from medssl.core.csv_files import read_cells
from medssl.core.errors import DataError
from medssl.data.findings import Finding
from medssl.data.scan_names import patient_of_visit, stem_of

Case = dict[str, Any]
TABLE = "patients.csv"
SHOWN_PATIENTS = 3
SHOWN_SCANS = 5


def name_patients(root: Path, cases: Sequence[Case]) -> None:
    """Replace the patients of `cases` by those of `patients.csv`, a table with a heading: case, patient."""
    patients = _table_of(root)
    if patients is None or not cases:
        return
    if not any(case["id"] in patients for case in cases):
        raise DataError(
            f"{root / TABLE}: names none of the {len(cases)} scans, first {cases[0]['id']}. "
            "Expected a heading and lines 'case,patient' with the scans' names."
        )
    for case in cases:
        if case["id"] in patients:  # only a digest goes on: the table may hold names
            case["patient"] = hashlib.sha256(patients[case["id"]].encode()).hexdigest()[:12]


def patient_findings(root: Path, cases: Sequence[Case]) -> list[Finding]:
    """Warnings about who is whom: a table that leaves scans out, or scans of one patient by their names and no table.

    Cases with roles (of a split) are a finding only where such a patient is in training and in validation or test.
    """
    patients = _table_of(root)
    message = _of_similar_names(cases) if patients is None else _of_table(patients, cases)
    if not message or not cases:
        return []
    return [Finding("all", str(root / TABLE), "warning", "patients", message)]


def _table_of(root: Path) -> dict[str, str] | None:
    """Case -> patient of the table; None where there is no table."""
    table = root / TABLE
    if not table.is_file():
        return None
    return {stem_of(Path(cells[0])): cells[1] for cells in read_cells(table)[1:] if len(cells) > 1 and cells[1]}


def _of_table(patients: dict[str, str], cases: Sequence[Case]) -> str:
    left_out = [case["id"] for case in cases if case["id"] not in patients]
    if not left_out:
        return ""
    return (
        f"names {len(cases) - len(left_out)} of {len(cases)} scans, expected all. Each scan that it leaves out counts "
        f"as a patient of its own: {_shown(left_out, SHOWN_SCANS)}. Add a line 'case,patient' for each."
    )


def _of_similar_names(cases: Sequence[Case]) -> str:
    suggested = _suggested_patients(cases)
    are_split = any("role" in case for case in cases)
    if are_split:
        suggested = {name: scans for name, scans in suggested.items() if len({_side(scan) for scan in scans}) > 1}
    if not suggested:
        return ""
    number = sum(len(scans) for scans in suggested.values())
    examples = [f"{name} ({_shown(_scan_texts(scans), SHOWN_SCANS)})" for name, scans in suggested.items()]
    listed = _shown(examples, SHOWN_PATIENTS, "; ")
    if are_split:
        begin = f"no such file. By the scans' names, {len(suggested)} patient(s) are on both sides of the split: "
        begin += f"{listed}. The scores may be too good."
    else:
        begin = f"no such file. By their names, {number} scans are of {len(suggested)} patient(s): {listed}. "
        begin += "A split may train on a patient and test on the same one."
    first_name, first_scans = next(iter(suggested.items()))
    return (
        f"{begin} Write this file: a heading 'case,patient', then a line a scan, e.g. "
        f"'{first_scans[0]['id']},{first_name}'. It keeps a patient's scans together."
    )


def _suggested_patients(cases: Sequence[Case]) -> dict[str, list[Case]]:
    """Patient -> its two and more scans, by names alone; nothing where all scans would be of one patient."""
    groups: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        is_known = case["patient"] != case["id"]
        groups[(None if is_known else patient_of_visit(case["id"])) or f"case {case['id']}"].append(case)
    if len(groups) < 2:
        return {}
    return {name: scans for name, scans in groups.items() if len(scans) > 1}


def _side(case: Case) -> str:
    return case["role"] if case["role"] in ("validation", "test") else "training"


def _scan_texts(scans: Sequence[Case]) -> list[str]:
    return [f"{scan['id']} {scan['role']}" if "role" in scan else scan["id"] for scan in scans]


def _shown(texts: Sequence[str], number: int, between: str = ", ") -> str:
    rest = f" and {len(texts) - number} more" if len(texts) > number else ""
    return between.join(texts[:number]) + rest
