"""Where a human should look first: scores of cases, structures and slices from a segmentation and its entropy map.

Most voxels of a scan are certain background, so that a mean over all of them measures the field of view. Scores here
look at a structure's surroundings: the predicted structure and whatever lies within a few millimetres of it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import ndimage

REACH_MM = 5.0
MOST_UNCERTAIN_SHARE = 0.01
BANDS = {1: "low uncertainty", 2: "middle uncertainty", 3: "high uncertainty"}
BAND_EDGES = (0.2, 0.5, 0.8)  # as shares of the largest entropy there is


@dataclass(frozen=True)
class SliceNeed:
    """A slice across `axis` of a scan, and the sum of the entropy (bits) of its voxels in the surroundings."""

    axis: int
    index: int
    entropy_bits: float


def surroundings(inside: np.ndarray, spacing_mm: tuple[float, ...], reach_mm: float = REACH_MM) -> np.ndarray:
    """True for the voxels within reach_mm of one that is True in `inside`, itself included; all False if none is."""
    near = np.zeros(inside.shape, dtype=bool)
    if not inside.any():
        return near
    box = tuple(
        slice(max(0, part.start - steps), part.stop + steps)
        for part, steps in zip(
            ndimage.find_objects(inside.astype(np.uint8))[0],
            (math.ceil(reach_mm / spacing) for spacing in spacing_mm),
            strict=True,
        )
    )
    near[box] = ndimage.distance_transform_edt(~inside[box], sampling=spacing_mm) <= reach_mm
    return near


def structure_surroundings(
    segmentation: np.ndarray, spacing_mm: tuple[float, ...], structures: Mapping[int, str], reach_mm: float = REACH_MM
) -> dict[str, np.ndarray]:
    """Structure -> its surroundings."""
    return {name: surroundings(segmentation == number, spacing_mm, reach_mm) for number, name in structures.items()}


def entropy_around(near: np.ndarray, entropy: np.ndarray) -> float:
    """Mean entropy (bits) of the surroundings `near` of a structure.

    Of a structure that was not found the most uncertain percent of the scan counts: it is low where the network is
    sure that there is none.
    """
    return float(entropy[near].mean()) if near.any() else _most_uncertain(entropy)


def structure_scores(
    segmentation: np.ndarray,
    entropy: np.ndarray,
    spacing_mm: tuple[float, ...],
    structures: Mapping[int, str],
    reach_mm: float = REACH_MM,
) -> dict[str, float]:
    """Structure -> its `entropy_around`."""
    around = structure_surroundings(segmentation, spacing_mm, structures, reach_mm)
    return {name: entropy_around(near, entropy) for name, near in around.items()}


def slice_needs(
    segmentation: np.ndarray,
    entropy: np.ndarray,
    spacing_mm: tuple[float, ...],
    reach_mm: float = REACH_MM,
    near: np.ndarray | None = None,
) -> list[SliceNeed]:
    """The slices of a scan, the most uncertain one first; of the same uncertainty the one in front first.

    Slices are those a reader turns through: across the axis with the coarsest spacing, the last one among equals. Where
    nothing was found, all voxels count. near: the surroundings of all structures, where they are known already.
    """
    axis = max(range(len(spacing_mm)), key=lambda place: (round(spacing_mm[place], 3), place))
    if near is None:
        near = surroundings(segmentation > 0, spacing_mm, reach_mm)
    counted = np.where(near, entropy, 0) if near.any() else entropy
    sums = counted.sum(axis=tuple(other for other in range(counted.ndim) if other != axis), dtype=np.float64)
    order = sorted(range(len(sums)), key=lambda index: (-sums[index], index))
    return [SliceNeed(axis, index, float(sums[index])) for index in order]


def uncertainty_bands(entropy: np.ndarray, num_classes: int) -> np.ndarray:
    """0 where the network is sure, 1, 2, 3 (BANDS) where its entropy passes 20, 50 and 80 % of log2 num_classes."""
    return np.digitize(entropy / math.log2(num_classes), BAND_EDGES).astype(np.uint8)


def _most_uncertain(entropy: np.ndarray) -> float:
    """Mean of the largest values, one percent of all."""
    count = max(1, round(entropy.size * MOST_UNCERTAIN_SHARE))
    return float(np.partition(entropy, -count, axis=None)[-count:].mean())
