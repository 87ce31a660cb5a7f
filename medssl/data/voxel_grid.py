"""Where a voxel array lies in the patient: always (X, Y, Z) with an affine from voxel index to RAS millimetres."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from medssl.data.findings import Fault

SPACING_RANGE_MM = (0.05, 20.0)
SHEAR_COSINE = 1e-3  # of two axes; 0 where they are perpendicular
SAME_SPACING_MM = 1e-3
SAME_ORIGIN_VOXELS = 0.1  # of the smallest voxel edge
SAME_DIRECTION = 1e-3  # per direction cosine

LPS_TO_RAS = np.diag([-1.0, -1.0, 1.0, 1.0])


def spacing_of(affine: np.ndarray) -> tuple[float, float, float]:
    """Voxel size in mm along the three array axes: the lengths of the affine's columns, never negative."""
    x, y, z = (float(length) for length in np.linalg.norm(affine[:3, :3], axis=0))
    return x, y, z


@dataclass(frozen=True, eq=False)
class Header:
    """What a file declares before its voxels are read. shape (X, Y, Z); affine (4, 4) to RAS mm; dtype as returned."""

    shape: tuple[int, ...]
    affine: np.ndarray
    dtype: np.dtype

    @property
    def spacing_mm(self) -> tuple[float, float, float]:
        return spacing_of(self.affine)


@dataclass(frozen=True, eq=False)
class Volume:
    """A scan or label map. array (X, Y, Z); affine (4, 4) float64, voxel index to RAS mm as in nibabel."""

    array: np.ndarray
    affine: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def spacing_mm(self) -> tuple[float, float, float]:
        return spacing_of(self.affine)


def affine_faults(affine: np.ndarray) -> list[Fault]:
    """What makes an affine useless: values that are not finite, zero or dependent columns, odd spacing, shear."""
    rewrite = "Write the true geometry into the header, or export the scan again."
    if not np.isfinite(affine).all():
        return [Fault("nan-affine", f"affine with NaN or Inf, expected finite numbers. {rewrite}")]
    spacing = np.asarray(spacing_of(affine))
    if not spacing.any():
        return [Fault("zero-affine", f"affine of zeros, expected the voxel axes in mm. {rewrite}")]
    if not spacing.all():
        return [Fault("spacing", f"spacing {_numbers(spacing)} mm, expected more than 0 mm. {rewrite}")]
    axes = affine[:3, :3] / spacing
    if abs(np.linalg.det(axes)) < 1e-6:
        return [Fault("singular-affine", f"singular affine, expected three independent axes. {rewrite}")]
    faults = []
    low, high = SPACING_RANGE_MM
    if spacing.min() < low or spacing.max() > high:
        message = f"spacing {_numbers(spacing)} mm, expected {low} to {high:g} mm. Check the unit. {rewrite}"
        faults.append(Fault("spacing", message))
    cosine = float(np.abs(axes.T @ axes - np.eye(3)).max())
    if cosine > SHEAR_COSINE:
        degrees = np.degrees(np.arcsin(min(cosine, 1.0)))
        message = f"axes sheared by {degrees:.2f} degrees, expected perpendicular axes. Resample to a straight grid."
        faults.append(Fault("shear", message))
    return faults


def grid_mismatches(image: Header | Volume, label: Header | Volume) -> Iterator[Fault]:
    """How a label's grid differs from its image's: shape, spacing (0.001 mm), origin (0.1 voxel), direction (0.001)."""
    resample = "Resample the label onto the image."
    if image.shape != label.shape:
        yield Fault("shape-mismatch", f"shape {label.shape}, image has {image.shape}. {resample}")
    ours, theirs = np.asarray(label.spacing_mm), np.asarray(image.spacing_mm)
    if np.abs(ours - theirs).max() > SAME_SPACING_MM:
        yield Fault("spacing-mismatch", f"spacing {_numbers(ours)} mm, image has {_numbers(theirs)} mm. {resample}")
    if np.abs(label.affine[:3, 3] - image.affine[:3, 3]).max() > SAME_ORIGIN_VOXELS * theirs.min():
        found, expected = _numbers(label.affine[:3, 3]), _numbers(image.affine[:3, 3])
        yield Fault("origin-mismatch", f"origin {found} mm, image has {expected} mm. {resample}")
    if np.abs(label.affine[:3, :3] / ours - image.affine[:3, :3] / theirs).max() > SAME_DIRECTION:
        yield Fault("direction-mismatch", f"other axis directions than the image, expected the same. {resample}")


def reordered(volume: Volume, like: Header | Volume) -> Volume:
    """The same voxels, the array's axes flipped and exchanged so that they run as those of `like`; no resampling."""
    cosines = np.linalg.inv(like.affine[:3, :3] / like.spacing_mm) @ (volume.affine[:3, :3] / volume.spacing_mm)
    order = max(itertools.permutations(range(3)), key=lambda axes: float(np.abs(cosines[range(3), axes]).sum()))
    array, affine = volume.array.transpose(order), np.eye(4)
    affine[:3, :3], affine[:3, 3] = volume.affine[:3, order], volume.affine[:3, 3]
    for axis, source in enumerate(order):
        if cosines[axis, source] < 0:
            affine[:3, 3] += affine[:3, axis] * (array.shape[axis] - 1)
            affine[:3, axis] *= -1
            array = np.flip(array, axis)
    return Volume(array, affine)


def _numbers(values: np.ndarray) -> str:
    return f"({', '.join(f'{value:.6g}' for value in values)})"
