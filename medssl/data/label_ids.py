"""The ids of a folder's labels: named by dataset.json, or else those that the label files hold."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from medssl.core.errors import DataError
from medssl.core.progress import tracked
from medssl.data.findings import Finding, Severity
from medssl.data.volumes import read_volume

Case = dict[str, Any]
IdsOfLabels = Mapping[str, frozenset[int]]  # address of a label -> the ids above 0 in it
DESCRIPTION = "dataset.json"
ENOUGH_LABELS = 5  # from this number on, an id that only one label has is odd
_FORM = '"labels": {"1": "liver"} or {"liver": 1}'


def structure_names(root: Path, cases: Sequence[Case], ids: IdsOfLabels | None = None) -> dict[int, str]:
    """Label id to name, from `dataset.json` (MSD or nnU-Net form) or else from the ids in the label files."""
    names = described_structures(root)
    if names:
        return names
    if not any("label" in case for case in cases):
        raise DataError(f"{root}: no label found. Put at least one label of a scan's name into {root / 'labels'}.")
    known = read_label_ids(cases) if ids is None else ids
    all_ids = sorted(frozenset().union(*known.values()))
    if not all_ids:
        raise DataError(f"{root / 'labels'}: no id above 0 in any readable label. Run 'medssl check-data {root}'.")
    return {i: f"label {i}" for i in all_ids}


def described_structures(root: Path) -> dict[int, str]:
    """Label id to name as `dataset.json` says: {"1": "liver"} of MSD or {"liver": 1} of nnU-Net; {} without the file.

    Raises DataError for an "ignore" label, which medssl would take for a structure, and for a file of another form.
    """
    path = root / DESCRIPTION
    if not path.is_file():
        return {}
    try:
        entries = json.loads(path.read_text())["labels"].items()
        pairs = [(int(k), str(v)) if str(k).isdigit() else (int(v), str(k)) for k, v in entries]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        way_out = f"Expected {_FORM}, one id a structure; or remove the file."
        raise DataError(f"{path}: its labels cannot be read ({type(error).__name__}: {error}). {way_out}") from error
    for number, name in pairs:
        if name.strip().lower() == "ignore":
            raise DataError(
                f'{path}: the label "{name}" ({number}) stands for voxels that nobody labelled, expected structures '
                f"only: medssl has no ignore label so far, and would learn it as a structure. Set the voxels of id "
                f"{number} to 0 in the labels, or take the labels of these cases out of the folder (they are then "
                f'unlabelled); then remove "{name}" from this file.'
            )
    return {i: name for i, name in sorted(pairs) if i != 0}


def read_label_ids(cases: Sequence[Case]) -> dict[str, frozenset[int]]:
    """The ids above 0 of every label that can be read; the check of the data names the others."""
    labels = [str(case["label"]) for case in cases if "label" in case]
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        ids = list(tracked(pool.map(_ids_of, labels), "reading the ids of labels", "labels", len(labels)))
    return {label: own for label, own in zip(labels, ids, strict=True) if own is not None}


def _ids_of(label: str) -> frozenset[int] | None:
    try:
        values = np.unique(read_volume(label).array)
    except DataError:
        return None
    return frozenset(int(v) for v in values if np.isfinite(v) and v == int(v) and v > 0)


def odd_id_findings(root: Path, cases: Sequence[Case], ids: IdsOfLabels) -> list[Finding]:
    """Findings for labels whose ids do not fit those of the others, where no dataset.json names the ids.

    Error: a label has no id in common with any other, while others share theirs. Warning: the same of a few labels
    among many, and an id that one label alone has besides the common ones.
    """
    names = {str(case["label"]): str(case["id"]) for case in cases if "label" in case}
    groups = _sharing_groups(ids)
    if not groups or len(groups[0]) < 2:
        return []
    common = _ids_text(_ids_in(groups[0], ids))
    way_out = f"Mend the label. If its ids are right, name all ids in {root / DESCRIPTION}: {_FORM}."
    findings = []
    for group in groups[1:]:
        if len(group) > 1 and 4 * len(group) > len(groups[0]):
            continue  # two kinds of labels, then, and neither is the odd one
        own = _ids_text(_ids_in(group, ids))
        message = f"ids {own} and no other, in {len(group)} label(s) only; {len(groups[0])} labels have {common}, "
        message += f"expected the same ids in all. {way_out}"
        severity: Severity = "error" if len(group) == 1 else "warning"
        for label in group:
            findings.append(Finding(names[label], label, severity, "odd-label-ids", message))
    return findings + [
        Finding(names[label], label, "warning", "rare-label-id", f"{message} {way_out}")
        for label, message in _rare_ids(groups[0], ids)
    ]


def _rare_ids(group: Sequence[str], ids: IdsOfLabels) -> Iterable[tuple[str, str]]:
    """Labels with ids that none of the others has, and what is to be said of them."""
    if len(group) < ENOUGH_LABELS:
        return
    labels_with = Counter(number for label in group for number in ids[label])
    for label in group:
        rare = [number for number in ids[label] if labels_with[number] == 1]
        if rare:
            yield label, f"ids {_ids_text(rare)} in this label only, of {len(group)}, expected ids that others have."


def _sharing_groups(ids: IdsOfLabels) -> list[list[str]]:
    """Labels that share ids, directly or through others; the largest group first, empty labels in none."""
    groups: list[tuple[frozenset[int], list[str]]] = []
    for label, own in ids.items():
        if own:
            sharing = [group for group in groups if group[0] & own]
            groups = [group for group in groups if not group[0] & own]
            together = own.union(*(group_ids for group_ids, _ in sharing))
            groups.append((together, [*(name for _, names in sharing for name in names), label]))
    return sorted((labels for _, labels in groups), key=len, reverse=True)


def _ids_in(labels: Iterable[str], ids: IdsOfLabels) -> frozenset[int]:
    return frozenset().union(*(ids[label] for label in labels))


def _ids_text(ids: Iterable[int]) -> str:
    shown = sorted(ids)
    return ", ".join(str(i) for i in shown[:10]) + (", ..." if len(shown) > 10 else "")
