"""Differences and tables of the simulations as text."""

import math
from collections.abc import Sequence

from medssl.report.comparison.bootstrap import Interval


def difference_text(mean: float, interval: Interval, digits: int = 2) -> str:
    """'+0.10 [+0.05, +0.15] *': a mean, its 95 % interval, and a star where that excludes zero."""
    if math.isnan(interval.low):
        return f"{mean:+.{digits}f}"
    star = " *" if interval.excludes_zero else ""
    return f"{mean:+.{digits}f} [{interval.low:+.{digits}f}, {interval.high:+.{digits}f}]{star}"


def markdown_table(titles: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table; every line has a text for each title."""
    rows = [titles, ["---"] * len(titles), *lines]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
