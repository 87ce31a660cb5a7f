"""Patch accuracy versus patch uncertainty (Mukhoti and Gal, 2018, "Evaluating Bayesian deep learning methods")."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from medssl.core.errors import ConfigError, DataError
from medssl.metrics.inputs import Array, Values, as_array, boolean_mask, check_same_shape


class PatchCounts(NamedTuple):
    """How many windows are accurate or not and certain or not."""

    accurate_certain: int
    accurate_uncertain: int
    inaccurate_certain: int
    inaccurate_uncertain: int

    @property
    def accurate_given_certain(self) -> float:
        """p(accurate | certain), NaN where no window is certain."""
        return _share(self.accurate_certain, self.inaccurate_certain)

    @property
    def uncertain_given_inaccurate(self) -> float:
        """p(uncertain | inaccurate), NaN where no window is inaccurate."""
        return _share(self.inaccurate_uncertain, self.inaccurate_certain)

    @property
    def pavpu(self) -> float:
        """Share of windows that are accurate and certain, or inaccurate and uncertain."""
        return (self.accurate_certain + self.inaccurate_uncertain) / sum(self) if sum(self) else float("nan")


def pavpu(
    correct: Values,
    uncertainty: Values,
    window: int | Sequence[int],
    accuracy_threshold: float = 0.5,
    uncertainty_threshold: float = 0.4,
    counted: Values | None = None,
) -> float:
    """PAvPU in [0, 1]: share of windows that are accurate and certain, or inaccurate and uncertain; NaN without any.

    The arguments are those of `patch_counts`.
    """
    return patch_counts(correct, uncertainty, window, accuracy_threshold, uncertainty_threshold, counted).pavpu


def patch_counts(
    correct: Values,
    uncertainty: Values,
    window: int | Sequence[int],
    accuracy_threshold: float = 0.5,
    uncertainty_threshold: float = 0.4,
    counted: Values | None = None,
) -> PatchCounts:
    """The numbers of accurate or inaccurate, certain or uncertain windows.

    correct: 2-D or 3-D, true where prediction and label agree. uncertainty: the same shape, in any unit.
    window: edge length in voxels, one for all axes or one per axis; windows do not overlap. A window cut off by the
    image's far border counts as one window and is averaged over the voxels it has.
    A window is accurate if mean(correct) > accuracy_threshold, certain if mean(uncertainty) < uncertainty_threshold,
    which is in the unit of `uncertainty`. The thesis states 0.4 without a unit and no accuracy threshold; 0.5, and
    averaging within a window, are ours. counted: the same shape, true for voxels that count (the others have no label);
    None for all. A window without any is left out.
    Raises DataError where the arrays do not fit, ConfigError where the window does not.
    """
    check_same_shape(correct, uncertainty, "correct", "uncertainty")
    is_correct = boolean_mask(correct, "correct")
    if is_correct.ndim not in (2, 3) or not is_correct.size:
        raise DataError(f"correct has shape {is_correct.shape}, expected an image or a volume that is not empty.")
    edges = _edges(window, is_correct.ndim)

    weights = _counted(counted, is_correct)
    voxels = _window_sums(weights, edges)
    sums = _window_sums(as_array(uncertainty) * weights, edges)
    if not np.isfinite(sums).all():
        raise DataError("uncertainty holds NaN or infinite values, expected finite ones.")
    filled = voxels > 0
    accurate = _window_sums(is_correct & weights, edges)[filled] / voxels[filled] > accuracy_threshold
    certain = sums[filled] / voxels[filled] < uncertainty_threshold
    return PatchCounts(
        accurate_certain=int(np.count_nonzero(accurate & certain)),
        accurate_uncertain=int(np.count_nonzero(accurate & ~certain)),
        inaccurate_certain=int(np.count_nonzero(~accurate & certain)),
        inaccurate_uncertain=int(np.count_nonzero(~accurate & ~certain)),
    )


def _edges(window: int | Sequence[int], dimensions: int) -> tuple[int, ...]:
    """The window's edge length along each axis."""
    edges = (window,) * dimensions if isinstance(window, int | np.integer) else tuple(window)
    if len(edges) != dimensions or any(edge != int(edge) or edge < 1 for edge in edges):
        raise ConfigError(f"window {window}, expected one whole number above 0, or {dimensions} of them.")
    return tuple(int(edge) for edge in edges)


def _counted(counted: Values | None, is_correct: Array) -> Array:
    """Which voxels count, in the shape of `is_correct`."""
    if counted is None:
        return np.ones(is_correct.shape, dtype=bool)
    check_same_shape(counted, is_correct, "counted", "correct")
    return boolean_mask(counted, "counted")


def _window_sums(values: Array, edges: tuple[int, ...]) -> Array:
    """Sum of each window, cut-off windows included."""
    for axis, edge in enumerate(edges):
        values = np.add.reduceat(values, np.arange(0, values.shape[axis], edge), axis=axis, dtype=np.float64)
    return values


def _share(part: int, rest: int) -> float:
    return part / (part + rest) if part + rest else float("nan")
