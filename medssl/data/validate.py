"""The check of every scan and label before training: whatever MONAI would take without a word becomes a finding.

findings = check_cases(cases, label_ids=[1, 2], cache_file="runs/data_check.json")
rich.print(findings_text(findings))
require_valid(findings)
"""

import os
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from medssl.core.progress import tracked
from medssl.data.check_cache import load_cache, save_cache, stamp_of
from medssl.data.findings import Fault, Finding, VolumeError, findings_text, require_valid
from medssl.data.volumes import Volume, read_volume, split_address
from medssl.data.voxel_grid import affine_faults, grid_mismatches

__all__ = ["Finding", "check_case", "check_cases", "findings_text", "require_valid"]

TRAINING_ROLES = ("labelled", "unlabelled", "validation")
SHOWN_IDS = 10

Case = dict[str, Any]


def check_case(case: Case, label_ids: Collection[int] | None = None) -> list[Finding]:
    """Findings of one case: its image, its label and how the two fit. Never raises; all is well where it is empty.

    label_ids: the ids a label may hold besides 0; None takes any integers.
    """
    name, findings = str(case.get("id", "")), list[Finding]()
    grids: list[Volume] = []
    for key in ("image", "label"):
        if key not in case:
            needed = key == "image" or case.get("role") == "labelled"
            faults = [Fault("missing", f"no {key} is named, expected one. Add its path.")] if needed else []
            findings += _findings(name, str(case.get("image", "")), faults)
            continue
        address = str(case[key])
        volume, faults = _read(address)
        if volume is not None:
            geometry = affine_faults(volume.affine)
            values = _image_faults(volume) if key == "image" else _label_faults(volume, label_ids, case.get("role"))
            faults = [*geometry, *values]
            grids += [volume] if not geometry else []
        findings += _findings(name, address, faults)
    if len(grids) == 2:
        findings += _findings(name, str(case["label"]), grid_mismatches(*grids))
    return findings


def check_cases(
    cases: Sequence[Case],
    label_ids: Collection[int] | None = None,
    cache_file: str | os.PathLike[str] | None = None,
    workers: int | None = None,
) -> list[Finding]:
    """Findings of all cases in their order, then those between cases: equal ids, a file twice, a patient on both sides.

    cache_file: JSON that remembers unchanged files. workers: threads, at most 4 by default, as each holds a scan.
    """
    cache = load_cache(cache_file)
    stamps = [stamp_of(case, label_ids) for case in cases]
    unknown = {stamp: case for stamp, case in zip(stamps, cases, strict=True) if stamp not in cache}
    with ThreadPoolExecutor(workers or min(4, os.cpu_count() or 1)) as pool:
        checked = pool.map(lambda case: check_case(case, label_ids), unknown.values())
        shown = tracked(checked, "checking scans", "scans", len(unknown))
        cache.update(zip(unknown, shown, strict=True))
    if unknown:
        save_cache(cache_file, cache)
    return [finding for stamp in stamps for finding in cache[stamp]] + list(_findings_between(cases))


def _read(address: str) -> tuple[Volume | None, list[Fault]]:
    try:
        return read_volume(address), []
    except VolumeError as error:
        return None, [Fault(error.code, str(error).removeprefix(f"{address}: "))]
    except Exception as error:  # a library's own error is a finding of this file too, not the end of the check
        kind = type(error).__name__
        return None, [Fault("unreadable", f"cannot be read ({kind}), expected a 3-D volume. Convert it to .nii.gz.")]


def _findings(case: str, file: str, faults: Iterator[Fault] | Sequence[Fault]) -> list[Finding]:
    return [Finding(case, file, fault.severity, fault.code, fault.message) for fault in faults]


def _not_finite(array: np.ndarray) -> list[Fault]:
    """Faults for NaN and Inf; the minimum and maximum tell whether there is need to count."""
    if np.isfinite(array.min()) and np.isfinite(array.max()):
        return []
    counts = (("nan-voxels", "NaN", int(np.isnan(array).sum())), ("inf-voxels", "Inf", int(np.isinf(array).sum())))
    way_out = "Replace them by the background value, or export the file again."
    return [
        Fault(code, f"{count} {kind} voxels of {array.size}, expected finite values. {way_out}")
        for code, kind, count in counts
        if count
    ]


def _image_faults(volume: Volume) -> list[Fault]:
    array = volume.array
    faults = _not_finite(array)
    if array.min() == array.max():
        message = f"every voxel is {array.flat[0]:g}, expected a scan with contrast. Export the scan again."
        faults.append(Fault("constant", message))
    if min(array.shape) == 1:
        message = f"shape {array.shape}, expected several slices. Check that the whole series was converted."
        faults.append(Fault("single-slice", message, "warning"))
    return faults


def _label_faults(volume: Volume, label_ids: Collection[int] | None, role: str | None) -> list[Fault]:
    array = volume.array
    faults = _not_finite(array)
    if faults:
        return faults
    if array.dtype.kind == "f" and (broken := array[array != np.rint(array)]).size:
        message = f"{broken.size} voxels hold no integer ({_listed(np.unique(broken))}), expected integer label ids."
        return [Fault("fractional-label", f"{message} Resample labels with nearest neighbour.")]
    ids: set[int] = set().union(*(np.unique(part).astype(int).tolist() for part in np.moveaxis(array, -1, 0)))
    unknown = [] if label_ids is None else sorted(ids - {0, *label_ids})
    if unknown:
        expected = f"0 and {_listed(sorted(label_ids or ()))}"
        message = f"label ids {_listed(unknown)}, expected {expected}. Mend the label, or name the ids in the data set."
        faults.append(Fault("unknown-label", message))
    if ids == {0}:
        message = "only background (0), expected at least one labelled voxel. Check the label, or drop the case."
        faults.append(Fault("empty-label", message, "error" if role == "labelled" else "warning"))
    return faults


def _listed(values: Sequence[float] | np.ndarray) -> str:
    shown = ", ".join(f"{value:g}" for value in values[:SHOWN_IDS])
    return f"{shown}, ..." if len(values) > SHOWN_IDS else shown


def _findings_between(cases: Sequence[Case]) -> Iterator[Finding]:
    """Findings that need more than one case. They name cases and files, never the patient."""
    for twins in _grouped(cases, "id"):
        for case in twins[1:]:
            message = f"id of {len(twins)} cases, expected one case an id. Rename the case."
            yield Finding(str(case["id"]), str(case.get("image", "")), "error", "duplicate-id", message)
    for twins in _grouped(cases, "image"):
        for case in twins[1:]:
            message = f"also the image of case {twins[0].get('id')}, expected one case a file. Drop one of them."
            yield Finding(str(case.get("id", "")), str(case["image"]), "error", "duplicate-image", message)
    for cases_of_patient in _grouped(cases, "patient"):
        training = [case for case in cases_of_patient if case.get("role") in TRAINING_ROLES]
        for case in cases_of_patient:
            if case.get("role") == "test" and training:
                message = f"same patient as {training[0].get('role')} case {training[0].get('id')}, expected no patient"
                message += " in both training and test. Split by patient."
                yield Finding(str(case.get("id", "")), str(case.get("image", "")), "error", "patient-leak", message)


def _grouped(cases: Sequence[Case], key: str) -> list[list[Case]]:
    """Groups of two and more cases that share the value of the key; images are compared as resolved paths."""
    groups: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        if key in case:
            path, inner = split_address(str(case[key]))
            groups[f"{path.resolve()}::{inner}" if key == "image" else str(case[key])].append(case)
    return [group for group in groups.values() if len(group) > 1]
