"""Small multiples of Dice against each coefficient that was varied (thesis, figure of the hyper-parameters)."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from medssl.metrics.catalogue import DICE, Metric
from medssl.report.comparison.coefficients import Curve
from medssl.report.figures.style import PAGE_WIDTH_IN, SLATE, TEAL, share_limits, styled

COLUMNS, LONGEST_NAME = 4, 34
COLOURS = (TEAL, "#b45309", SLATE, "#7c3aed")


@styled
def coefficient_panels(curves: Mapping[str, Sequence[Curve]], metric: Metric = DICE) -> Figure:
    """Mean of the metric over seeds, with its sd as a bar, against the value of every coefficient in `curves`."""
    columns = min(COLUMNS, len(curves))
    rows = math.ceil(len(curves) / columns)
    figure = Figure(figsize=(PAGE_WIDTH_IN * columns / COLUMNS, 0.1 + 2.1 * rows), layout="constrained")
    panels = list(figure.subplots(rows, columns, squeeze=False, sharey=True).flat)
    for index, (name, varied) in enumerate(curves.items()):
        axes = panels[index]
        for number, curve in enumerate(varied):
            _draw_curve(axes, curve, COLOURS[number % len(COLOURS)])
        _scale(axes, sorted({value for curve in varied for value, _ in curve.points}))
        coefficient = varied[0].coefficient
        axes.set_title(f"{coefficient.symbol}  {coefficient.meaning}", loc="left")
        axes.set_xlabel(name)
        if index % columns == 0:
            axes.set_ylabel(metric.axis_title)
        if len(varied) > 1:
            axes.legend(loc="best", fontsize=7)
    for axes in panels[len(curves) :]:
        axes.remove()
    panels[0].set_ylim(share_limits(_ends(curves)))
    return figure


def _draw_curve(axes: Axes, curve: Curve, colour: str) -> None:
    values = [value for value, _ in curve.points]
    means = [stat.mean for _, stat in curve.points]
    spreads = np.nan_to_num([stat.sd for _, stat in curve.points])
    axes.errorbar(
        values, means, spreads, fmt="-o", color=colour, lw=1.8, ms=5, mew=0, elinewidth=1.2, label=_name(curve)
    )


def _name(curve: Curve) -> str:
    text = ", ".join(
        f"{key} {value:g}" if isinstance(value, float) else f"{key} {value}" for key, value in curve.setting.items()
    )
    return text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}…"


def _scale(axes: Axes, values: Sequence[float]) -> None:
    """A tick at every value, on a logarithmic axis that has a place for zero."""
    positive = [value for value in values if value > 0]
    if values[0] == 0 and positive:
        axes.set_xscale("symlog", linthresh=positive[0])
    elif values[0] > 0:
        axes.set_xscale("log")
    axes.set_xticks(values, [f"{value:g}" for value in values])
    axes.xaxis.set_minor_locator(NullLocator())


def _ends(curves: Mapping[str, Sequence[Curve]]) -> list[float]:
    """The lowest and highest end of every bar."""
    stats = [stat for varied in curves.values() for curve in varied for _, stat in curve.points]
    spreads = np.nan_to_num([stat.sd for stat in stats])
    means = np.array([stat.mean for stat in stats])
    return [*(means - spreads), *(means + spreads)]
