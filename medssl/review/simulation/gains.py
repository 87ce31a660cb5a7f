"""Areas below curves and gains of one order over another: means with intervals, and as text."""

from collections.abc import Sequence

import numpy as np

from medssl.metrics.catalogue import SHARE
from medssl.report.comparison.bootstrap import Interval, case_interval, crossed_interval
from medssl.report.comparison.difference_tables import interval_text, signed
from medssl.report.grids import Cell


def mean_of(values: np.ndarray, patients: Sequence[str]) -> tuple[float, Interval]:
    """Mean of values (seeds, cases) and its 95 % interval over both; over cases alone where there is one seed."""
    interval = crossed_interval if len(values) > 1 else case_interval
    return float(values.mean()), interval(values, patients)


def area_cell(mean: float, interval: Interval) -> Cell:
    """An area as a share and its 95 % interval."""
    return Cell(f"{mean:.3f}", small=f"[{interval.low:.3f}, {interval.high:.3f}]")


def gain_cell(mean: float, interval: Interval) -> Cell:
    """A difference of shares in points (hundredths) and its 95 % interval; a star where that excludes zero."""
    scaled = Interval(100 * interval.low, 100 * interval.high)
    star = " *" if scaled.excludes_zero else ""
    return Cell(signed(100 * mean, SHARE) + star, small=interval_text(scaled, SHARE))
