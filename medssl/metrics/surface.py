"""Distances in mm between the surfaces of two binary masks, as medpy defines them and the literature reports them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import ndimage

from medssl.metrics.inputs import Array, Values, boolean_pair, positive_spacing_mm
from medssl.metrics.nearest import nearest_distances_mm

DENSE_SHARE = 1 / 8  # of the box: noise has more surface voxels than that, an organ far fewer


class SurfaceMeasures(NamedTuple):
    """Three summaries of the surface distances of one case, in mm."""

    hd95: float
    asd: float
    assd: float


def surface_measures(prediction: Values, label: Values, spacing_mm: Sequence[float] | Values) -> SurfaceMeasures:
    """HD95, ASD and ASSD of one class, in mm.

    hd95: 95th percentile of the distances of both directions pooled (MONAI takes the larger of two percentiles).
    asd: mean distance from the prediction's surface to the label's.
    assd: mean of the pooled distances, as in medpy 0.5 (medpy 0.4 gave both directions equal weight).

    Both masks empty: 0. One empty: the image's diagonal, shape times spacing, so that a total miss is never the best
    score. Raises DataError where shapes differ, values are not 0 and 1, or the spacing does not fit.
    """
    predicted, reference = boolean_pair(prediction, label)
    spacing = positive_spacing_mm(spacing_mm, predicted.ndim)
    if predicted.any() != reference.any():
        diagonal_mm = float(np.linalg.norm(predicted.shape * spacing))
        return SurfaceMeasures(diagonal_mm, diagonal_mm, diagonal_mm)
    if not predicted.any():
        return SurfaceMeasures(0.0, 0.0, 0.0)

    to_label_mm, to_prediction_mm = _directed_distances_mm(predicted, reference, spacing)
    pooled_mm = np.concatenate([to_label_mm, to_prediction_mm])
    return SurfaceMeasures(float(np.percentile(pooled_mm, 95)), float(to_label_mm.mean()), float(pooled_mm.mean()))


def surface_voxels(mask: Array) -> Array:
    """The mask's voxels with a face neighbour outside the mask; beyond the array's border all is outside."""
    padded = np.pad(mask, 1)
    interior = mask.copy()
    for axis in range(mask.ndim):
        for neighbour in (slice(None, -2), slice(2, None)):
            window = [slice(1, -1)] * mask.ndim
            window[axis] = neighbour
            interior &= padded[tuple(window)]
    return mask & ~interior


def _directed_distances_mm(predicted: Array, reference: Array, spacing: Array) -> tuple[Array, Array]:
    """Distances from each surface voxel to the other mask's surface: prediction to label, label to prediction."""
    surfaces = _Surface(predicted), _Surface(reference)
    return _distances_mm(*surfaces, spacing), _distances_mm(*surfaces[::-1], spacing)


class _Surface:
    """A mask's surface as an array of its shape, and the indices (N, D) of its voxels."""

    def __init__(self, mask: Array) -> None:
        # Nothing lies outside the box, so a crop without any margin leaves the surface as it is.
        box = _bounding_box(mask)
        cropped = surface_voxels(mask[box])
        self.array = np.zeros(mask.shape, dtype=bool)
        self.array[box] = cropped
        self.voxels = np.argwhere(cropped) + [part.start for part in box]


def _distances_mm(surface: _Surface, other: _Surface, spacing: Array) -> Array:
    """Distance from each voxel of one surface to the nearest of the other.

    Work on voxels grows with the surfaces, a distance transform with the volume: it is for masks that are all surface.
    Voxels on both surfaces, often the most, have distance 0 without a look.
    """
    apart = surface.voxels[~other.array[tuple(surface.voxels.T)]]
    found = np.zeros(len(surface.voxels))
    if len(apart) + len(other.voxels) > DENSE_SHARE * other.array.size:
        found[: len(apart)] = ndimage.distance_transform_edt(~other.array, sampling=spacing)[tuple(apart.T)]
    elif len(apart):
        found[: len(apart)] = nearest_distances_mm(apart, other.voxels, spacing)
    return found


def _bounding_box(mask: Array) -> tuple[slice, ...]:
    """The smallest box around a mask that is not empty."""
    box: tuple[slice, ...] = ()
    for axis in range(mask.ndim):
        occupied = np.flatnonzero(mask[box].any(axis=tuple(other for other in range(mask.ndim) if other != axis)))
        box += (slice(int(occupied[0]), int(occupied[-1]) + 1),)
    return box
