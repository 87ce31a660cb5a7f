"""The charts of a training: loss and learning rate over the steps."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import ArrayLike, NDArray

from medssl.report.runs import Run
from medssl.report.style import INK, MUTED, PAGE_WIDTH_IN, PALE_TEAL, SLATE, TEAL, lower_limit, styled

MAX_POINTS = 3000  # more than a figure has pixels


@styled
def training_curves(run: Run) -> Figure:
    """Loss and learning rate over the steps; beside it the validation Dice where the run has one."""
    validation = [record for record in run.records("validation") if "dice" in record]
    figure = Figure(figsize=(PAGE_WIDTH_IN, 3.1), layout=ConstrainedLayoutEngine(wspace=0.06))
    axes = figure.subplots(1, 2, width_ratios=(3, 2)) if validation else [figure.subplots()]
    _draw_loss(axes[0], run)
    if validation:
        _draw_validation(axes[1], validation)
    return figure


def smooth(values: ArrayLike, window: int) -> NDArray[np.float64]:
    """A centred moving average of the same length, shorter at the ends; non-finite values are left out."""
    series = np.asarray(values, dtype=float)
    finite = np.isfinite(series)
    kernel = np.ones(max(1, min(window, series.size)))
    total = np.convolve(np.where(finite, series, 0.0), kernel, mode="same")
    count = np.convolve(finite.astype(float), kernel, mode="same")
    return np.divide(total, count, out=np.full(series.size, np.nan), where=count > 0.5)


def _draw_loss(axes: Axes, run: Run) -> None:
    steps, epochs = run.records("step"), run.records("epoch")
    if steps:
        at, loss = _series(steps, "loss")
        keep = slice(None, None, max(1, at.size // MAX_POINTS))
        axes.plot(at[keep], loss[keep], color=PALE_TEAL, lw=0.8, alpha=0.7)
        axes.plot(at[keep], smooth(loss, max(5, at.size // 40))[keep], color=TEAL, lw=1.8, label="loss, smoothed")
    if epochs:
        at, loss = _series(epochs, "loss")
        axes.plot(at, loss, "o", ms=3, color=INK, alpha=0.8, mew=0, label="epoch mean")
    axes.set(xlabel="step", ylabel="loss")
    _draw_learning_rate(axes, [record for record in steps if "lr" in record])
    axes.legend(loc="upper right", ncols=3)


def _draw_learning_rate(axes: Axes, records: Sequence[dict[str, Any]]) -> None:
    if not records:
        return
    twin = axes.twinx()
    at, rate = _series(records, "lr")
    twin.plot(at, rate, color=SLATE, lw=1.2, ls=(0, (4, 2)))
    twin.set_ylim(0, max(float(np.nanmax(rate)) * 1.25, 1e-12))
    twin.set_ylabel("learning rate", color=MUTED)
    twin.grid(visible=False)
    twin.yaxis.set_major_formatter("{x:g}")
    axes.plot([], [], color=SLATE, lw=1.2, ls=(0, (4, 2)), label="learning rate")


def _draw_validation(axes: Axes, records: Sequence[dict[str, Any]]) -> None:
    at, dice = _series(records, "dice")
    axes.plot(at, dice, "-o", ms=4, color=TEAL, lw=1.8, mew=0)
    axes.set(xlabel="step", ylabel="validation Dice")
    if np.isfinite(dice).any():
        axes.set_ylim(lower_limit(dice), 1.0)


def _series(records: Sequence[dict[str, Any]], key: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Steps and values of a key; NaN where a record lacks it."""
    steps = [record.get("step", record.get("epoch", 0)) for record in records]
    values = [math.nan if record.get(key) is None else record[key] for record in records]
    return np.array(steps, dtype=float), np.array(values, dtype=float)
