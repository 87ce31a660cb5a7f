"""Calibration errors: how far confidence is from accuracy (ECE), and uncertainty from the error rate (UCE).

Both pool all voxels of a case. Bins, means and counts are those of MONAI's calibration_binning (1.6 and later). It sums
in float32, which turns a true ECE of 0.001 into 0.00005 on a million voxels; here it gets blocks of voxels and numbers
that float32 adds exactly, and the blocks are combined in float64.
"""

import math
from collections.abc import Iterable, Iterator

import numpy as np
import torch
from monai.metrics import calibration_binning

from medssl.core.errors import ConfigError, DataError
from medssl.metrics.inputs import Array, Values, as_array, boolean_mask
from medssl.uncertainty.maps import entropy_of

BLOCK_VOXELS = 2**16
EXACT_STEPS = (2.0**-8, 2.0**-16)  # a block's sum of multiples has 24 bits at most: float32 holds it
TOLERANCE = 1e-2  # a softmax in bfloat16 sums to 1 within this


def ece(probs: Values, label: Values, bins: int = 15, *, class_axis: int | None = None) -> float:
    """Expected calibration error of the most likely class, in [0, 1] (Guo et al., 2017).

    sum_b n_b / N |accuracy(b) - confidence(b)| over equal bins (left, right] of the largest probability.
    probs: (C, *spatial) with label (*spatial), or (N, C) with label (N,); another place of the classes is named by
    class_axis. label: class ids 0 .. C - 1. Raises DataError where shapes or values do not fit.
    """
    table = _class_table(probs, np.shape(label), class_axis)
    ids = as_array(label).reshape(-1)

    def confidence_and_accuracy() -> Iterator[tuple[Array, Array]]:
        for part in _blocks(ids.size):
            block, wanted = _checked_probs(table[:, part]), ids[part]
            if not np.isin(wanted, np.arange(len(table))).all():
                raise DataError(
                    f"label: values from {wanted.min()} to {wanted.max()}, expected class ids 0 to {len(table) - 1}."
                )
            yield block.max(axis=0), block.argmax(axis=0) == wanted

    return _expected_gap(confidence_and_accuracy(), bins)


def uce(uncertainty_or_probs: Values, correct: Values, bins: int = 15, *, class_axis: int | None = None) -> float:
    """Uncertainty calibration error, in [0, 1] (Laves et al., 2019).

    sum_b n_b / N |error rate(b) - uncertainty(b)| over equal bins (left, right] of the uncertainty in [0, 1].
    uncertainty_or_probs: an uncertainty in [0, 1] of the shape of `correct`; or probabilities with one axis more, of
    which the normalised entropy is taken (entropy / log2 C): (C, *spatial), or (N, C) if `correct` is (N,), or with
    the classes at class_axis. correct: true where prediction and label agree. Raises DataError where they do not fit.
    """
    right = boolean_mask(correct, "correct")
    if np.shape(uncertainty_or_probs) == right.shape:
        table = as_array(uncertainty_or_probs).reshape(1, -1)
    else:
        table = _class_table(uncertainty_or_probs, right.shape, class_axis)
    wrong = ~right.reshape(-1)

    def uncertainty_and_error() -> Iterator[tuple[Array, Array]]:
        for part in _blocks(wrong.size):
            block = table[:, part]
            values = _checked_uncertainty(block[0]) if len(table) == 1 else _normalised_entropy(_checked_probs(block))
            yield values, wrong[part]

    return _expected_gap(uncertainty_and_error(), bins)


def _expected_gap(blocks: Iterable[tuple[Array, Array]], bins: int) -> float:
    """sum_b n_b / N |mean score - mean outcome| over the bins of the scores, which are in [0, 1]; within 1e-7."""
    if bins < 1:
        raise ConfigError(f"bins {bins}, expected at least 1.")
    gap, voxels = np.zeros(bins), 0
    for scores, outcomes in blocks:
        gap += _gap_of_block(scores, outcomes, bins)
        voxels += len(scores)
    if not voxels:
        raise DataError("no voxels, expected at least 1.")
    return float(np.abs(gap).sum() / voxels)


def _gap_of_block(scores: Array, outcomes: Array, bins: int) -> Array:
    """n_b (mean score - mean outcome) of every bin (left, right], from MONAI's means and counts.

    The differences go to MONAI in three parts: two rounded ones, which add up without error, and the tiny rest.
    """
    rest, parts = scores - outcomes, []
    for step in EXACT_STEPS:
        parts.append(np.rint(rest / step) * step)
        rest = rest - parts[-1]
    differences = torch.from_numpy(np.stack([*parts, rest], dtype=np.float32))[None]
    binned_by = torch.from_numpy(scores.astype(np.float32)).expand_as(differences)
    # right=False gives (left, right], as torch.bucketize has it; MONAI's docstring says the contrary
    _, means, counts = calibration_binning(binned_by, differences, bins, right=False)
    return as_array((means.double().nan_to_num() * counts).sum(dim=(0, 1)))  # an empty bin has mean NaN


def _class_table(probs: Values, spatial: tuple[int, ...], class_axis: int | None) -> Array:
    """The probabilities as (C, N)."""
    if class_axis is None:
        class_axis = -1 if len(spatial) == 1 else 0
    array = as_array(probs)
    if array.ndim != len(spatial) + 1 or np.moveaxis(array, class_axis, 0).shape[1:] != tuple(spatial):
        raise DataError(
            f"probabilities of shape {array.shape} with classes on axis {class_axis} do not fit {tuple(spatial)}. "
            "Give (C, *spatial), or (N, C) for a list, or name class_axis."
        )
    classes = array.shape[class_axis]
    if classes < 2:
        raise DataError(f"probabilities of {classes} class, expected 2 or more. Stack (1 - p, p) for one foreground.")
    return np.moveaxis(array, class_axis, 0).reshape(classes, -1)


def _blocks(voxels: int) -> Iterator[slice]:
    return (slice(start, start + BLOCK_VOXELS) for start in range(0, voxels, BLOCK_VOXELS))


def _checked_probs(block: Array) -> Array:
    """The block (C, N) in float64, clipped to [0, 1]; raises DataError where it is not probabilities."""
    block = block.astype(np.float64)
    if not (np.abs(block.sum(axis=0) - 1) <= TOLERANCE).all() or block.min() < -TOLERANCE:
        raise DataError("probabilities: not all between 0 and 1 with sum 1 over the classes. Apply softmax first.")
    return block.clip(0, 1)


def _checked_uncertainty(block: Array) -> Array:
    """The block in float64, clipped to [0, 1]; raises DataError where it is not normalised."""
    block = block.astype(np.float64)
    if not ((block >= -TOLERANCE) & (block <= 1 + TOLERANCE)).all():
        raise DataError(
            f"uncertainty: values from {block.min():.4g} to {block.max():.4g}, expected 0 to 1. "
            "Divide an entropy in bits by log2 of the number of classes."
        )
    return block.clip(0, 1)


def _normalised_entropy(block: Array) -> Array:
    return as_array(entropy_of(torch.from_numpy(block), dim=0) / math.log2(len(block))).clip(0, 1)
