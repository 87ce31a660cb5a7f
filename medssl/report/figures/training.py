"""The charts of a training: loss, learning rate and validation over the steps, stage by stage."""

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import ArrayLike, NDArray

from medssl.metrics.catalogue import Metric
from medssl.report.figures.style import INK, MUTED, PAGE_WIDTH_IN, PALE_TEAL, SLATE, TEAL, lower_limit, make_log, styled
from medssl.report.run import Run

MAX_POINTS = 3000  # more than a figure has pixels
LOG_RATIO = 10  # between the losses of two stages: above it one of them would be a flat line

Record = dict[str, Any]
Values = NDArray[np.float64]


@styled
def training_curves(run: Run) -> Figure:
    """Loss and learning rate over the steps; beside it the task's validated metric where the run has one."""
    metric = run.task.validated
    validation = [record for record in run.records("validation") if metric.name in record]
    figure = Figure(figsize=(PAGE_WIDTH_IN, 3.1), layout=ConstrainedLayoutEngine(wspace=0.06))
    axes = figure.subplots(1, 2, width_ratios=(3, 2)) if validation else [figure.subplots()]
    _draw_loss(axes[0], run)
    if validation:
        _draw_validation(axes[1], validation, metric)
        mark_stages(axes[1], validation, stage_starts(run))
    return figure


def by_stage(records: Sequence[Record]) -> list[tuple[str, list[Record]]]:
    """The records of each stage with its name, in step order; one nameless stage where a run has no stages."""
    groups = groupby(records, lambda record: str(record.get("stage", "")))
    return [(name, list(of_stage)) for name, of_stage in groups]


def stage_starts(run: Run) -> dict[str, float]:
    """Name and first step of each stage."""
    records = run.records("step") or run.records("epoch")
    starts = {}
    for name, of_stage in by_stage(records):
        steps, _ = series(of_stage, "")
        starts[name] = float(steps[0])
    return starts


def mark_stages(axes: Axes, records: Sequence[Record], starts: Mapping[str, float]) -> None:
    """A line where a later stage begins, and the stages' names above; nothing where the records are of one stage."""
    shown = [name for name, _ in by_stage(records) if name in starts]
    if len(shown) < 2:
        return
    limits = axes.get_xlim()
    for name in shown:
        start = max(starts[name], limits[0])
        axes.annotate(
            name, (start, 1), (2, 3), xycoords=axes.get_xaxis_transform(), textcoords="offset points", color=MUTED
        )
        if name != shown[0]:
            axes.axvline(start, color=MUTED, lw=1, ls=(0, (2, 2)))
    axes.set_xlim(limits)


def series(records: Sequence[Record], key: str) -> tuple[Values, Values]:
    """Steps and values of a key; NaN where a record lacks it."""
    steps = [record.get("step", record.get("epoch", 0)) for record in records]
    values = [math.nan if record.get(key) is None else record[key] for record in records]
    return np.array(steps, dtype=float), np.array(values, dtype=float)


def smooth(values: ArrayLike, window: int) -> Values:
    """A centred moving average of the same length, shorter at the ends; non-finite values are left out."""
    numbers = np.asarray(values, dtype=float)
    finite = np.isfinite(numbers)
    kernel = np.ones(max(1, min(window, numbers.size)))
    total = np.convolve(np.where(finite, numbers, 0.0), kernel, mode="same")
    count = np.convolve(finite.astype(float), kernel, mode="same")
    return np.divide(total, count, out=np.full(numbers.size, np.nan), where=count > 0.5)


def draw_smoothed(axes: Axes, at: Values, values: Values, label: str = "") -> None:
    """Every value pale, and their moving average."""
    keep = slice(None, None, max(1, at.size // MAX_POINTS))
    axes.plot(at[keep], values[keep], color=PALE_TEAL, lw=0.8, alpha=0.7)
    axes.plot(at[keep], smooth(values, max(5, at.size // 40))[keep], color=TEAL, lw=1.8, label=label)


def _draw_loss(axes: Axes, run: Run) -> None:
    steps, epochs = run.records("step"), run.records("epoch")
    for index, (_, records) in enumerate(by_stage(steps)):
        draw_smoothed(axes, *series(records, "loss"), label="" if index else "loss, smoothed")
    if epochs:
        at, loss = series(epochs, "loss")
        axes.plot(at, loss, "o", ms=3, color=INK, alpha=0.8, mew=0, label="epoch mean")
    axes.set(xlabel="step", ylabel="loss")
    _fit_both_stages(axes, steps)
    _draw_learning_rate(axes, [record for record in steps if "lr" in record])
    mark_stages(axes, steps or epochs, stage_starts(run))
    axes.legend(loc="upper right", ncols=3, frameon=True, edgecolor="none", framealpha=0.85)


def _fit_both_stages(axes: Axes, steps: Sequence[Record]) -> None:
    """A logarithmic loss where the stages' losses are of different orders."""
    losses = [series(of_stage, "loss")[1] for _, of_stage in by_stage(steps)]
    heights = [float(np.percentile(loss, 95)) for loss in losses if np.isfinite(loss).all() and (loss > 0).all()]
    if len(losses) == len(heights) > 1 and max(heights) > LOG_RATIO * min(heights):
        make_log(axes)


def _draw_learning_rate(axes: Axes, records: Sequence[Record]) -> None:
    if not records:
        return
    twin = axes.twinx()
    line: dict[str, Any] = {"color": SLATE, "lw": 1.2, "ls": (0, (4, 2))}
    for _, of_stage in by_stage(records):
        twin.plot(*series(of_stage, "lr"), **line)
    twin.set_ylim(0, max(float(np.nanmax(series(records, "lr")[1])) * 1.25, 1e-12))
    twin.set_ylabel("learning rate", color=MUTED)
    twin.grid(visible=False)
    twin.yaxis.set_major_formatter("{x:g}")
    axes.plot([], [], label="learning rate", **line)


def _draw_validation(axes: Axes, records: Sequence[Record], metric: Metric) -> None:
    for _, of_stage in by_stage(records):
        axes.plot(*series(of_stage, metric.name), "-o", ms=4, color=TEAL, lw=1.8, mew=0)
    axes.set(xlabel="step", ylabel=f"validation {metric.axis_title}")
    _, values = series(records, metric.name)
    if np.isfinite(values).any():
        axes.set_ylim(lower_limit(values), 1.0)
