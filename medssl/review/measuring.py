"""What the queue knows of a case: its record, the slices to look at and how many there are, from its stored maps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from nibabel.orientations import axcodes2ornt, io_orientation, ornt_transform

from medssl.core.errors import DataError
from medssl.data.volumes import read_header, read_volume
from medssl.data.voxel_grid import Header, Volume, grid_mismatches
from medssl.inference.outputs import UNCERTAIN_SLICES, StoredPrediction, describe, read_record
from medssl.report.figures.slices import PLANES, RADIOLOGICAL, View
from medssl.review.effort import Effort, Work
from medssl.review.sources import ReviewCase
from medssl.uncertainty.ranking import REACH_MM, SliceNeed, slice_needs, surroundings

PREDICT_AGAIN = "Predict the case again."


@dataclass(frozen=True)
class Measured:
    """A case as the queue sees it.

    record: as of medssl.inference.outputs.describe. names: class number -> structure. plane: of the slices a reader
    turns through. slices: the most uncertain ones, spread out, as places along `axis` of the scan, from 0.
    """

    case: ReviewCase
    record: Mapping[str, Any]
    names: Mapping[int, str]
    plane: str
    axis: int
    slices: Sequence[int]
    work: Work


def measure(case: ReviewCase, structures: Mapping[int, str] | None, effort: Effort) -> Measured:
    """Look at the stored maps of a case; without `structures` its own record names them.

    Raises DataError where a map is missing or damaged, or lies on another grid than the scan.
    """
    maps = read_maps(case)
    record = read_record(case.folder, case.id) or {}
    if structures is not None and "score" not in record:  # an evaluation writes no records
        record = describe(maps, dict(structures))
    names = recorded_names(record) if structures is None else structures
    near = surroundings(maps.segmentation > 0, maps.spacing_mm)
    needs = slice_needs(maps.segmentation, maps.entropy, maps.spacing_mm, near=near)
    axis = needs[0].axis
    shown = view_of(maps.affine, maps.entropy.shape, axis, needs[0].index)
    return Measured(
        case,
        record,
        names,
        PLANES[shown.axis],
        axis,
        [need.index for need in spread_out(needs, REACH_MM / maps.spacing_mm[axis], UNCERTAIN_SLICES)],
        effort.work(near, maps.entropy, maps.spacing_mm, axis),
    )


def read_maps(case: ReviewCase) -> StoredPrediction:
    """Segmentation and entropy of a case, on the grid of its scan. Raises DataError as `measure` does."""
    files = {name: case.folder / f"{case.id}_{name}.nii.gz" for name in ("seg", "entropy")}
    for name, file in files.items():
        if not file.is_file():
            kind = {"seg": "segmentation", "entropy": "entropy map"}[name]
            raise DataError(f"{file}: no {kind}, so nobody knows how sure the network was. {PREDICT_AGAIN}")
    segmentation, entropy = read_volume(files["seg"]), read_volume(files["entropy"])
    _require_grid(files["entropy"], entropy, segmentation, "its segmentation")
    if case.image is not None:
        _require_grid(files["seg"], segmentation, read_header(case.image), "its scan")
    if not np.isfinite(entropy.array).all():
        raise DataError(f"{files['entropy']}: values that are no numbers, expected bits. {PREDICT_AGAIN}")
    nothing = np.empty(0, np.float32)
    classes = np.rint(segmentation.array).astype(np.uint8)
    return StoredPrediction(case.id, nothing, entropy.array, nothing, segmentation.affine, classes)


def spread_out(needs: Sequence[SliceNeed], gap: float, count: int) -> list[SliceNeed]:
    """The first `count` slices with any entropy that are at least `gap` slices from those before them.

    Neighbours of the most uncertain slice look much like it. There are fewer where no more are so far apart.
    """
    chosen: list[SliceNeed] = []
    for need in needs:
        apart = all(abs(need.index - other.index) >= gap for other in chosen)
        if apart and need.entropy_bits > 0 and len(chosen) < count:
            chosen.append(need)
    return chosen


def view_of(affine: np.ndarray, shape: Sequence[int], axis: int, index: int) -> View:
    """The slice at `index` across `axis` of a volume, as a slice of the volume turned to radiological order."""
    turn = ornt_transform(io_orientation(affine), axcodes2ornt(RADIOLOGICAL))
    turned_axis, direction = turn[axis]
    return View(int(turned_axis), index if direction > 0 else shape[axis] - 1 - index, f"slice {index}")


def recorded_names(record: Mapping[str, Any]) -> dict[int, str]:
    """Class number -> name of the structures of a record. Raises DataError for one of an older version."""
    try:
        return {int(structure["class"]): name for name, structure in record["structures"].items()}
    except KeyError:
        raise DataError(f"case {record.get('id')}: its record numbers no structures. {PREDICT_AGAIN}") from None


def _require_grid(file: Path, found: Volume, expected: Volume | Header, whose: str) -> None:
    if list(grid_mismatches(expected, found)):
        texts = [f"{grid.shape} voxels of {_mm(grid.spacing_mm)} mm" for grid in (found, expected)]
        differing = f"{texts[0]}, {whose} has {texts[1]}" if texts[0] != texts[1] else f"lies elsewhere than {whose}"
        raise DataError(f"{file}: {differing}. {PREDICT_AGAIN}")


def _mm(spacing_mm: Sequence[float]) -> str:
    return " x ".join(f"{size:.3g}" for size in spacing_mm)
