"""The check of a whole data set: its cases one by one, and what only all of them together tell."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from medssl.core.errors import DataError
from medssl.data.datasets import DatasetFacts, DataSource
from medssl.data.findings import Finding
from medssl.data.label_ids import described_structures, odd_id_findings, read_label_ids
from medssl.data.patients import patient_findings
from medssl.data.validate import check_cases

Case = dict[str, Any]


def check_folder(facts: DatasetFacts, folder: Path) -> tuple[list[Case], list[Finding]]:
    """The cases of a data set in `folder`, and all findings about them; labels may be missing.

    Raises DataError where there is no such folder, or no data set in it.
    """
    if not folder.is_dir():
        reason = "a file, expected a folder" if folder.exists() else "no such folder"
        raise DataError(f"{folder}: {reason}. Give the folder of the data set, or one with images/ and labels/.")
    cases = facts.find(folder)
    if facts.targets:
        return cases, check_cases(cases, facts.label_ids)
    described = described_structures(folder)
    ids = {} if described else read_label_ids(cases)
    findings = check_cases(cases, sorted(described) or None)
    return cases, patient_findings(folder, cases) + odd_id_findings(folder, cases, ids) + findings


def check_split(source: DataSource, cases: Sequence[Case], cache_file: str | PathLike[str] | None) -> list[Finding]:
    """All findings about the cases of a split of `source`; those of unchanged files are taken from `cache_file`."""
    findings = check_cases(cases, source.facts.label_ids, cache_file)
    if source.facts.name != "folder":
        return findings
    odd_ids = odd_id_findings(source.root, source.cases, source.ids_of_labels)
    return patient_findings(source.root, cases) + odd_ids + findings
