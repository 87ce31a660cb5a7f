"""Dice and Jaccard of two binary masks. Both empty: 1 (agreement); one empty: 0."""

import numpy as np

from medssl.metrics.inputs import Array, Values, boolean_pair


def dice(prediction: Values, label: Values) -> float:
    """Dice coefficient 2 |P and L| / (|P| + |L|), in [0, 1].

    prediction, label: masks of one class and of equal shape, any number of dimensions. Raises DataError otherwise.
    """
    intersection, total = _sizes(*boolean_pair(prediction, label))
    return 2 * intersection / total if total else 1.0


def jaccard(prediction: Values, label: Values) -> float:
    """Jaccard index |P and L| / |P or L|, in [0, 1]; equal to D / (2 - D) for a Dice coefficient D.

    prediction, label: masks of one class and of equal shape, any number of dimensions. Raises DataError otherwise.
    """
    intersection, total = _sizes(*boolean_pair(prediction, label))
    return intersection / (total - intersection) if total else 1.0


def _sizes(prediction: Array, label: Array) -> tuple[int, int]:
    """Voxels in both masks, and voxels of the one plus voxels of the other."""
    intersection = np.count_nonzero(prediction & label)
    return int(intersection), int(np.count_nonzero(prediction) + np.count_nonzero(label))
