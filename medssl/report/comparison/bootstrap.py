"""Bootstrap intervals of a mean over seeds and cases.

Every seed is tested on the same cases: seeds and cases are crossed, not nested. A resample therefore draws seeds and,
independently, cases, both with replacement, and averages over the drawn rows and columns.

What a few seeds can tell is little. A bootstrap never looks beyond the values it has, so as far as the seeds go the
interval reaches at most from the lowest to the highest of them; and even that whole range misses the true value in
2^(1-S) of all experiments with S seeds (for a symmetric spread): 1 in 2 with two seeds, 1 in 4 with three, 1 in 16 with
five. With fewer than six seeds "95 %" is a name, not a promise. Where the cases are what varies, it is about right;
where neither is, but only their combination, it is too wide (such noise counts up to three times). tests/report has the
simulations.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

RESAMPLES = 10_000
MOST_DRAWS = 20_000_000  # of cases in all resamples: 160 MB; 10,000 pictures are resampled 2,000 times
LEVEL = 0.95
ENOUGH_SEEDS = 6  # from here on the range of the seeds misses the true value less often than 1 in 20

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """Lower and upper end; both NaN where there is nothing to resample."""

    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """True where both ends lie on the same side of zero."""
        return self.low > 0 or self.high < 0


UNKNOWN = Interval(math.nan, math.nan)


def crossed_interval(values: Array, patients: ArrayLike) -> Interval:
    """The 95 % interval of the mean of `values` (seeds, cases) that covers both; UNKNOWN below two of either.

    patients: one number or name per case. Cases of one patient are not independent, so patients are what is drawn.
    """
    return _percentiles(values, patients) if len(values) > 1 else UNKNOWN


def case_interval(values: Array, patients: ArrayLike) -> Interval:
    """The 95 % interval over cases alone, seeds averaged: other patients, but these very trainings."""
    return _percentiles(values.mean(axis=0, keepdims=True), patients)


def resampled_means(values: Array, patients: ArrayLike, resamples: int = RESAMPLES, seed: int = 0) -> Array:
    """Means of `values` (seeds, cases) over drawn seeds and drawn patients, one per resample. Same seed, same means."""
    _, patient_of_case = np.unique(np.asarray(patients), return_inverse=True)
    scans = np.bincount(patient_of_case).astype(float)
    sums = np.stack([np.bincount(patient_of_case, weights=row) for row in values])
    seed_counts, patient_counts = _draws(len(values), scans.size, resamples, seed)
    totals = ((seed_counts @ sums) * patient_counts).sum(axis=1)
    return np.asarray(totals / (len(values) * (patient_counts @ scans)))


def few_seeds_text(seeds: Collection[int]) -> str:
    """What so few seeds cannot tell, in words; empty where there are enough. seeds: how many each difference has."""
    few = sorted(number for number in set(seeds) if 1 < number < ENOUGH_SEEDS)
    texts = []
    if 1 in seeds:
        texts.append("One seed tells nothing about other seeds: there, only the interval over cases is given.")
    if few:
        odds = ", ".join(f"1 of {2 ** (number - 1)} such experiments with {number} seeds" for number in few)
        texts.append(
            "These are few seeds. As far as seeds go, the interval reaches at most from the lowest to the highest of "
            f"them, and even that whole range misses the true difference in {odds}: a * is a hint, not a proof."
        )
    return " ".join(texts)


def _percentiles(values: Array, patients: ArrayLike) -> Interval:
    if np.unique(np.asarray(patients)).size < 2:
        return UNKNOWN
    tail = 50 * (1 - LEVEL)
    resamples = min(RESAMPLES, MOST_DRAWS // np.unique(np.asarray(patients)).size)
    low, high = np.percentile(resampled_means(values, patients, resamples), [tail, 100 - tail])
    return Interval(float(low), float(high))


@lru_cache(maxsize=16)
def _draws(seeds: int, patients: int, resamples: int, seed: int) -> tuple[Array, Array]:
    """How often every seed and every patient is drawn: (resamples, seeds) and (resamples, patients)."""
    rng = np.random.default_rng(seed)
    counts = [rng.multinomial(n, np.full(n, 1 / n), size=resamples).astype(float) for n in (seeds, patients)]
    return counts[0], counts[1]
