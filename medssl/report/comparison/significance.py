"""Whether a difference could be chance: a test by the bootstrap, and its correction for the number of tests."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from medssl.report.comparison.bootstrap import LEVEL, RESAMPLES, UNKNOWN, Array, Interval, resampled_means


def two_sided_p(values: Array, patients: ArrayLike) -> tuple[Interval, float]:
    """The interval of the mean of `values` (seeds, cases) and twice the share of resamples on the other side of zero.

    Seeds and patients are drawn; with one seed, patients alone. p is at least 1 / RESAMPLES. UNKNOWN and NaN where
    there are fewer than two patients.
    """
    if np.unique(np.asarray(patients)).size < 2:
        return UNKNOWN, float("nan")
    means = resampled_means(values, patients)
    tail = 50 * (1 - LEVEL)
    low, high = np.percentile(means, [tail, 100 - tail])
    beyond = min((means <= 0).mean(), (means >= 0).mean())
    return Interval(float(low), float(high)), float(min(1.0, max(2 * beyond, 1 / RESAMPLES)))


def holm(values: Sequence[float]) -> list[float]:
    """The p-values corrected by Holm: the smallest times n, the next times n - 1, ..., never falling, at most 1."""
    order = np.argsort(values)
    corrected = np.empty(len(values))
    largest = 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, values[place] * (len(values) - rank)))
        corrected[place] = largest
    return corrected.tolist()


def median_of_cases(values: Array) -> float:
    """The median over cases of the mean over seeds, of `values` (seeds, cases)."""
    return float(np.median(values.mean(axis=0)))
