"""The slices of a case worth looking at: scan, label, prediction and uncertainty on one grid, seen from the feet."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from nibabel.affines import voxel_sizes
from nibabel.orientations import apply_orientation, axcodes2ornt, inv_ornt_aff, io_orientation, ornt_transform
from numpy.typing import NDArray

from medssl.core.errors import DataError
from medssl.report.run import Run

# First axis towards the patient's left, so that np.rot90 of a slice has the patient's right on the viewer's left.
RADIOLOGICAL = ("L", "A", "S")
MARGIN_MM = 25.0
PLANES = {0: "sagittal", 1: "coronal", 2: "axial"}

Array = NDArray[Any]


@dataclass(frozen=True)
class CaseVolumes:
    """What a case panel shows, each (X, Y, Z) in L, A, S order; label and entropy where the case has them."""

    image: Array
    prediction: Array
    label: Array | None
    entropy: Array | None
    spacing_mm: tuple[float, float, float]

    @property
    def foreground(self) -> Array:
        """True where the label or the prediction has a structure."""
        return (self.prediction > 0) if self.label is None else (self.prediction > 0) | (self.label > 0)


@dataclass(frozen=True)
class View:
    """A slice: across `axis` at `index`, and what makes it worth seeing."""

    axis: int
    index: int
    why: str

    def of(self, volume: Array) -> Array:
        """The slice as an image, first row at the top, the patient's right or front on the left."""
        picture = np.rot90(np.take(volume, self.index, axis=self.axis))
        return np.fliplr(picture) if self.axis == 0 else picture

    def pixel_mm(self, spacing_mm: tuple[float, float, float]) -> tuple[float, float]:
        """Width and height of a pixel of the slice."""
        width, height = (size for axis, size in enumerate(spacing_mm) if axis != self.axis)
        return width, height


def load_case(run: Run, case: str) -> CaseVolumes:
    """Scan, mapped label, prediction and entropy of an evaluated case.

    Raises DataError where the split does not know the case, a file is missing or the grids differ.
    """
    entry = next((c for c in run.split.get("cases", []) if c.get("id") == case), None)
    if entry is None:
        raise DataError(f"{case}: not in split.json of this run, so its scan cannot be found.")
    predictions = run.folder / "evaluation" / "predictions"
    image, spacing_mm = _read(run.located(entry["image"]))
    prediction, _ = _read(predictions / f"{case}_seg.nii.gz")
    label = _read(run.located(entry["label"]))[0] if entry.get("label") else None
    entropy_file = predictions / f"{case}_entropy.nii.gz"
    entropy = _read(entropy_file)[0] if entropy_file.is_file() else None
    for name, volume in {"prediction": prediction, "label": label, "entropy": entropy}.items():
        if volume is not None and volume.shape != image.shape:
            raise DataError(f"{case}: {name} has {volume.shape} voxels, the scan {image.shape}. Evaluate again.")
    mapped = None if label is None else map_label(label, run.facts.get("label_map"))
    return CaseVolumes(image, np.rint(prediction).astype(int), mapped, entropy, spacing_mm)


def map_label(label: Array, label_map: Mapping[str, int] | None) -> Array:
    """The label with its ids replaced by class numbers, ids missing from the map by 0; as it is without a map."""
    ids = np.rint(label).astype(int)
    if label_map is None:
        return ids
    mapped = np.zeros_like(ids)
    for source, target in label_map.items():
        mapped[ids == int(source)] = int(target)
    return mapped


def to_radiological(array: Array, affine: Array) -> tuple[Array, tuple[float, float, float]]:
    """The array in L, A, S axis order and direction, with its spacing in mm. affine: voxels to RAS."""
    turn = ornt_transform(io_orientation(affine), axcodes2ornt(RADIOLOGICAL))
    x, y, z = voxel_sizes(affine @ inv_ornt_aff(turn, array.shape))
    return apply_orientation(array, turn), (float(x), float(y), float(z))


def zoom(volumes: CaseVolumes, certain_below_bits: float = 0.5) -> CaseVolumes:
    """The volumes cropped to the structures and every uncertain voxel, with a margin around them."""
    shown = volumes.foreground
    if volumes.entropy is not None:
        shown = shown | (volumes.entropy > certain_below_bits)
    if not shown.any():
        return volumes
    box = tuple(
        _span(shown.any(axis=tuple(other for other in range(3) if other != axis)), MARGIN_MM / volumes.spacing_mm[axis])
        for axis in range(3)
    )
    label = None if volumes.label is None else volumes.label[box]
    entropy = None if volumes.entropy is None else volumes.entropy[box]
    return CaseVolumes(volumes.image[box], volumes.prediction[box], label, entropy, volumes.spacing_mm)


def telling_views(volumes: CaseVolumes) -> list[View]:
    """Three slices: axial and coronal through the largest area, and the most uncertain axial one.

    Where that is the first one too, the most uncertain coronal one takes its place; without an entropy, or where that
    is known already as well, a sagittal one does.
    """
    axial = View(2, _busiest(volumes.foreground, 2), "largest area")
    coronal = View(1, _busiest(volumes.foreground, 1), "largest area")
    sagittal = View(0, _busiest(volumes.foreground, 0), "largest area")
    if volumes.entropy is None:
        return [axial, coronal, sagittal]
    unsure = {axis: View(axis, _busiest(volumes.entropy, axis), "most uncertain") for axis in (1, 2)}
    if unsure[2].index != axial.index:
        return [axial, unsure[2], coronal]
    axial = replace(axial, why="largest area, most uncertain")
    if unsure[1].index != coronal.index:
        return [axial, coronal, unsure[1]]
    return [axial, replace(coronal, why="largest area, most uncertain"), sagittal]


def _read(address: str | Path) -> tuple[Array, tuple[float, float, float]]:
    from medssl.data.volumes import read_volume  # noqa: PLC0415  it brings MONAI, seconds that tables need not wait for

    volume = read_volume(address)
    return to_radiological(np.asarray(volume.array), np.asarray(volume.affine))


def _span(used: Array, margin: float) -> slice:
    first, last = np.flatnonzero(used)[[0, -1]]
    return slice(max(0, int(first - margin)), min(used.size, int(np.ceil(last + margin)) + 1))


def _busiest(volume: Array, axis: int) -> int:
    """Index of the slice with the largest sum; the middle one where all are empty."""
    sums = volume.sum(axis=tuple(other for other in range(3) if other != axis), dtype=float)
    return int(sums.argmax()) if sums.any() else sums.size // 2
