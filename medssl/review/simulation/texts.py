"""Gains of one order over another as text."""

from medssl.report.comparison.bootstrap import Interval
from medssl.report.comparison.difference_tables import interval_text, signed
from medssl.report.grids import Cell


def gain_cell(mean: float, interval: Interval) -> Cell:
    """A difference of shares in points (hundredths) and its 95 % interval; a star where that excludes zero."""
    scaled = Interval(100 * interval.low, 100 * interval.high)
    return Cell(
        signed(100 * mean, "points") + (" *" if scaled.excludes_zero else ""), small=interval_text(scaled, "points")
    )
