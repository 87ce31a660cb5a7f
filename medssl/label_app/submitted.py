"""A label as a viewer submits it, made into one that can be trained on: the scan's grid, the model's classes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from medssl.core.errors import DataError
from medssl.data.volumes import read_volume
from medssl.data.voxel_grid import Header, Volume, grid_mismatches

_VOXEL_TOLERANCE = 0.05


def submitted_label(
    label: Volume, scan: Header, structures: Mapping[int, str], names: Mapping[int, str], case: str
) -> Volume:
    """The label with the model's class at every voxel, uint8.

    structures: the model's class -> name. names: what the label's own ids are called, where the viewer tells; ids
    without a name are classes. Raises DataError for another grid than the scan's, for values that are no integers and
    for structures the model does not have.
    """
    mismatch = next(iter(grid_mismatches(scan, label)), None)
    if mismatch is not None:
        raise DataError(f"label of {case}: {mismatch.message}")
    values = np.unique(label.array)
    if not np.isfinite(values).all() or (values != np.rint(values)).any():
        raise DataError(f"label of {case}: values that are no integers, expected classes. Save it as a label map.")
    classes = np.zeros(label.shape, dtype=np.uint8)
    for value in values[values != 0]:
        classes[label.array == value] = _class_of(int(value), structures, names, case)
    return Volume(classes, scan.affine)


def placed(label: Volume, scan: Header | Volume) -> Volume:
    """The label on the scan's grid, if its voxels are the scan's, some of them left out; else the label as it is.

    OHIF leaves out the slices before the first and after the last that it has drawn on. The axes run as the scan's.
    """
    to_scan = np.linalg.inv(scan.affine) @ label.affine
    offset = np.rint(to_scan[:3, 3]).astype(int)
    shift = np.eye(4)
    shift[:3, 3] = offset
    corners = np.array([[0, 0, 0, 1], [*label.shape, 1]]).T
    labelled = np.argwhere(label.array)
    target = labelled + offset
    if (
        np.abs((to_scan - shift) @ corners).max() > _VOXEL_TOLERANCE
        or not ((target >= 0) & (target < scan.shape)).all()
    ):
        return label
    array = np.zeros(scan.shape, dtype=label.array.dtype)
    array[tuple(target.T)] = label.array[tuple(labelled.T)]
    return Volume(array, scan.affine)


def read_submitted(
    file: str | Path, scan: Header, structures: Mapping[int, str], label_info: Sequence[Mapping[str, Any]], case: str
) -> Volume:
    """The label in `file` as submitted_label gives it.

    label_info: as 3D Slicer and OHIF send it, a name and perhaps an id (`idx`) for every segment, in their order.
    """
    return submitted_label(read_volume(file), scan, structures, segment_names(label_info), case)


def segment_names(label_info: Any) -> dict[int, str]:
    """Id -> name of the segments that have one; `label_info` as in read_submitted, DataError if it is not."""
    names = {}
    try:
        for place, entry in enumerate(label_info, start=1):
            if entry.get("name"):
                names[int(entry.get("idx", place))] = str(entry["name"])
    except (AttributeError, TypeError, ValueError, OverflowError):
        raise DataError("label_info: expected objects with a `name`, and perhaps a number as `idx`.") from None
    return names


def _class_of(value: int, structures: Mapping[int, str], names: Mapping[int, str], case: str) -> int:
    known = ", ".join(f"{number} {name}" for number, name in structures.items())
    if value in names:
        wanted = names[value].strip().casefold()
        for number, name in structures.items():
            if name.casefold() == wanted:
                return number
        raise DataError(f"label of {case}: segment '{names[value]}', the model has {known}. Remove or rename it.")
    if value not in structures:
        raise DataError(f"label of {case}: id {value}, the model has {known}. Remove that segment.")
    return value
