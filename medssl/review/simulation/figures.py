"""The curves of the simulations: errors found against work, Dice against labelled cases."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import shorten
from typing import Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from medssl.core.files import write_bytes_atomically
from medssl.report.figures.style import PAGE_WIDTH_IN, SLATE, TEAL, figure_png, share_limits, styled
from medssl.review.simulation.discovery import ORDERS, UNITS, Curve

LONGEST_NAME = 34
AMBER, PALE = "#b45309", "#c5ccd6"
LINES = {"uncertainty": (TEAL, "-"), "contour": (AMBER, "-"), "random": (SLATE, "--"), "oracle": (PALE, "-")}


class InspectedRuns(Protocol):
    """What is drawn of an inspection.Inspection, which imports this module. curves: (unit, order) -> curve."""

    @property
    def dataset(self) -> str: ...
    @property
    def method(self) -> str: ...
    @property
    def labelled(self) -> int: ...
    @property
    def curves(self) -> Mapping[tuple[str, str], Curve]: ...


class ReviewRounds(Protocol):
    """What is drawn of a rounds.RoundsResult, which imports this module. dice: (strategy, labelled) -> array."""

    @property
    def strategies(self) -> Sequence[str]: ...
    @property
    def labelled(self) -> Sequence[int]: ...
    @property
    def dice(self) -> Mapping[tuple[str, int], np.ndarray]: ...


@styled
def inspection_figure(inspections: Sequence[InspectedRuns]) -> Figure:
    """A column for each group of runs, a row for slices and one for voxels."""
    columns = len(inspections)
    width = PAGE_WIDTH_IN * min(1.0, columns / 3)
    figure = Figure(figsize=(max(width, 4.0), 5.2), layout="constrained")
    panels = figure.subplots(len(UNITS), columns, squeeze=False, sharex=True, sharey=True)
    for column, inspection in enumerate(inspections):
        for row, unit in enumerate(UNITS):
            _draw_curves(panels[row, column], inspection, unit)
        method = shorten(inspection.method, LONGEST_NAME, placeholder=" …")
        panels[0, column].set_title(f"{inspection.dataset}, {inspection.labelled} labels\n{method}", loc="left")
    panels[0, 0].legend(loc="lower right")
    for row in panels:
        row[0].set_ylabel("errors found")
    return figure


@styled
def rounds_figure(result: ReviewRounds) -> Figure:
    """Mean test Dice against the number of labelled cases, a line for each order of the queue, dots for seeds."""
    figure = Figure(figsize=(PAGE_WIDTH_IN / 2, 3.2), layout="constrained")
    axes = figure.subplots()
    colours = dict(zip(result.strategies, (TEAL, SLATE, PALE, AMBER), strict=False))
    values = []
    for strategy, colour in colours.items():
        means = [result.dice[strategy, number].mean(axis=1) for number in result.labelled]
        axes.plot(result.labelled, [seeds.mean() for seeds in means], "-o", color=colour, lw=1.8, ms=5, label=strategy)
        for number, seeds in zip(result.labelled, means, strict=True):
            axes.plot([number] * len(seeds), seeds, ".", color=colour, ms=4, alpha=0.5)
            values += list(seeds)
    axes.set(xlabel="labelled cases", ylabel="test Dice", ylim=share_limits(values))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(loc="lower right")
    return figure


def write_inspection_figure(inspections: Sequence[InspectedRuns], path: Path) -> None:
    write_bytes_atomically(path, figure_png(inspection_figure(inspections)))


def write_rounds_figure(result: ReviewRounds, path: Path) -> None:
    write_bytes_atomically(path, figure_png(rounds_figure(result)))


def _draw_curves(axes: Axes, inspection: InspectedRuns, unit: str) -> None:
    for order in ORDERS:
        curve = inspection.curves[unit, order]
        colour, line = LINES[order]
        axes.plot(curve.inspected, curve.found, line, color=colour, lw=1.8, label=order)
    axes.set(xlabel=f"{unit} inspected", xlim=(0, 1), ylim=(0, 1.02))
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
