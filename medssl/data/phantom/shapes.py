"""Soft shapes in millimetres: what the phantom's organs are built from.

A shape is a signed distance (negative inside) at every voxel; `Canvas.paint` turns it into the share of the
voxel that the tissue fills, so that borders carry partial volume and the label follows from the same numbers.
Positions are in patient axes: (left, front, up) in mm, shape (3, *spatial).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum, auto

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage

Volume = NDArray[np.float32]


class Tissue(IntEnum):
    """What a voxel can hold. AIR comes first: an empty volume is all air."""

    AIR = 0
    COUCH = auto()
    SKIN = auto()
    FAT = auto()
    MUSCLE = auto()
    LUNG = auto()
    BONE = auto()
    MARROW = auto()
    DISC = auto()
    SPINAL_CANAL = auto()
    ARTERY = auto()
    VEIN = auto()
    LIVER = auto()
    SPLEEN = auto()
    PANCREAS = auto()
    BOWEL_WALL = auto()
    WATER = auto()
    CHYME = auto()
    ORAL_CONTRAST = auto()
    BOWEL_GAS = auto()
    KIDNEY_CORTEX = auto()
    KIDNEY_MEDULLA = auto()
    URINE = auto()
    TUMOUR = auto()
    CYST = auto()


class Canvas:
    """Layers of tissue over air, at voxels whose place in the patient is `position_mm`, (3, *spatial)."""

    def __init__(self, position_mm: Volume, border_mm: float):
        """Start empty; `border_mm` is the width over which the border of a shape passes from 0 to 1."""
        self.position_mm = position_mm
        self.border_mm = border_mm
        self._layers: list[tuple[Tissue, NDArray[np.intp], Volume]] = []

    def paint(self, tissue: Tissue, distance_mm: Volume) -> None:
        """Lay `tissue` over all that was painted before, inside the shape."""
        covered = np.clip(0.5 - distance_mm / self.border_mm, 0, 1).astype(np.float32).ravel()
        touched = np.flatnonzero(covered > 0)
        self._layers.append((tissue, touched, covered[touched]))

    def paint_hollow(self, wall: Tissue, content: Tissue, distance_mm: Volume, wall_mm: float) -> None:
        """Paint an organ with a wall of `wall_mm` around its content."""
        self.paint(wall, distance_mm)
        self.paint(content, distance_mm + wall_mm)

    def fractions(self) -> Volume:
        """The share of each voxel that each tissue fills: (*spatial, tissue), summing to 1 over tissues."""
        shape = self.position_mm.shape[1:]
        fractions = np.zeros((int(np.prod(shape)), len(Tissue)), dtype=np.float32)
        uncovered = np.ones(len(fractions), dtype=np.float32)
        for tissue, touched, covered in reversed(self._layers):
            seen = covered * uncovered[touched]
            fractions[touched, tissue] += seen
            uncovered[touched] -= seen
        fractions[:, Tissue.AIR] += uncovered
        return fractions.reshape(*shape, len(Tissue))


def share_of(fractions: Volume, *tissues: Tissue) -> Volume:
    """Share of each voxel that these tissues fill together."""
    return fractions[..., list(tissues)].sum(axis=-1)


def rotation(degrees_about_axes: ArrayLike) -> NDArray[np.float32]:
    """Rotation matrix from angles in degrees about the left, front and up axis, applied in this order."""
    matrix = np.eye(3)
    for axis, angle in enumerate(np.deg2rad(degrees_about_axes)):
        first, second = [(1, 2), (2, 0), (0, 1)][axis]
        turn = np.eye(3)
        turn[first, first] = turn[second, second] = np.cos(angle)
        turn[first, second], turn[second, first] = -np.sin(angle), np.sin(angle)
        matrix = turn @ matrix
    return matrix.astype(np.float32)


def in_frame(position_mm: Volume, centre_mm: ArrayLike, axes: NDArray[np.float32] | None = None) -> Volume:
    """Positions seen from `centre_mm`, along the columns of `axes` where given."""
    centred = position_mm - np.asarray(centre_mm, dtype=np.float32).reshape(3, 1, 1, 1)
    return centred if axes is None else np.tensordot(axes.T, centred, axes=1)


def ellipsoid_mm(position_mm: Volume, radii_mm: ArrayLike) -> Volume:
    """Signed distance to an ellipsoid at the origin, exact to first order near its surface."""
    radii = np.asarray(radii_mm, dtype=np.float32).reshape(3, 1, 1, 1)
    scaled = position_mm / radii
    level = np.sqrt((scaled**2).sum(axis=0)) + 1e-6
    slope = np.sqrt(((scaled / radii) ** 2).sum(axis=0)) + 1e-6
    return level * (level - 1) / slope


def ellipse_column_mm(position_mm: Volume, radii_mm: tuple[float, float]) -> Volume:
    """Signed distance to an upright column of elliptic section (left and front radius)."""
    flat = position_mm.copy()
    flat[2] = 0
    return ellipsoid_mm(flat, (*radii_mm, 1))


def tube_mm(position_mm: Volume, path_mm: ArrayLike, radii_mm: ArrayLike) -> Volume:
    """Signed distance to a tube along a polyline; `radii_mm` is one radius or one per point of the path."""
    path = np.asarray(path_mm, dtype=np.float32)
    radii = np.broadcast_to(np.asarray(radii_mm, dtype=np.float32), len(path))
    nearby = _within_box(position_mm, path.min(axis=0) - 2 * radii.max(), path.max(axis=0) + 2 * radii.max())
    points = position_mm[:, nearby]
    distance = np.full(points.shape[1], 2 * radii.max(), dtype=np.float32)
    for start, end, start_radius, end_radius in zip(path[:-1], path[1:], radii[:-1], radii[1:], strict=True):
        along = end - start
        offset = points - start[:, None]
        progress = np.clip(along @ offset / max(float(along @ along), 1e-6), 0, 1)
        gap = np.sqrt(((offset - along[:, None] * progress) ** 2).sum(axis=0))
        np.minimum(distance, gap - start_radius - (end_radius - start_radius) * progress, out=distance)
    result = np.full(position_mm.shape[1:], 2 * radii.max(), dtype=np.float32)
    result[nearby] = distance
    return result


def _within_box(position_mm: Volume, low_mm: ArrayLike, high_mm: ArrayLike) -> NDArray[np.bool_]:
    low, high = (np.reshape(corner, (3, 1, 1, 1)) for corner in (low_mm, high_mm))
    return ((position_mm > low) & (position_mm < high)).all(axis=0)


def both(*distances_mm: Volume) -> Volume:
    """Intersection of shapes."""
    return np.maximum.reduce(distances_mm)


def either(*distances_mm: Volume) -> Volume:
    """Union of shapes."""
    return np.minimum.reduce(distances_mm)


def smooth_field(rng: np.random.Generator, shape: Sequence[int], knots: int) -> Volume:
    """Smooth random field in [-1, 1] with `knots` free values along each axis; its scale follows the volume's size."""
    field = rng.uniform(-1, 1, (knots,) * len(shape))
    for size in shape:
        weights = ndimage.zoom(np.eye(knots), (size / knots, 1), order=3, mode="nearest", grid_mode=True)
        # Each product moves the axis just refined to the end, so that the next one comes first.
        field = np.tensordot(field, weights, axes=(0, 1))
    return np.clip(field, -1, 1).astype(np.float32)
