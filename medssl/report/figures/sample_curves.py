"""Time and quality against the number T of Monte Carlo samples, from samples.csv (`medssl samples RUN`)."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray

from medssl.core.csv_files import read_rows
from medssl.core.errors import DataError
from medssl.core.run_files import SAMPLES
from medssl.report.figures.style import PAGE_WIDTH_IN, SLATE, TEAL, make_log, share_limits, styled
from medssl.report.run import Task

TIME, PATCH_TIME = "seconds", "patch_seconds"
WAY_OUT = "Run 'medssl samples' again."

SampleRow = dict[str, float]


def read_samples(run_folder: Path, task: Task) -> list[SampleRow]:
    """The numbers of samples, times and metrics in a run's samples.csv; none where there is no such file.

    Also the time of a patch, unless the file was made before that was measured. Raises DataError where it is damaged.
    """
    columns = ["samples", TIME, *(metric.name for metric in task.sampled)]
    rows = []
    for row, where in read_rows(run_folder / SAMPLES, columns, WAY_OUT):
        names = [*columns, PATCH_TIME] if PATCH_TIME in row else columns
        try:
            rows.append({name: float(row[name]) for name in names})
        except (TypeError, ValueError) as error:
            raise DataError(f"{where}: {error!r} is missing or no number. {WAY_OUT}") from error
    return rows


def sampling_mode(run_folder: Path) -> str:
    """The mode that the samples of samples.csv were drawn in; empty where the file does not say."""
    for row, _ in read_rows(run_folder / SAMPLES, ["samples"], WAY_OUT):
        return str(row.get("mode") or "")
    return ""


def mean_curve(rows: Sequence[SampleRow], measure: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The numbers of samples, rising, and the mean of `measure` over the cases at each."""
    table = np.array([(row["samples"], row[measure]) for row in rows])
    counts = np.unique(table[:, 0])
    return counts, np.array([table[table[:, 0] == count, 1].mean() for count in counts])


@styled
def sample_curves(rows: Sequence[SampleRow], task: Task) -> Figure:
    """Panels of the mean over the cases against T: time (of a patch, too, if it was measured), the task's metrics."""
    figure = Figure(figsize=(PAGE_WIDTH_IN, 2.7), layout="constrained")
    time, *panels = figure.subplots(1, 1 + len(task.sampled))
    _draw_curve(time, rows, TIME, f"time per {task.case} (s)")
    if rows and PATCH_TIME in rows[0]:
        time.plot(*mean_curve(rows, PATCH_TIME), "--o", color=SLATE, lw=1.4, ms=4, mew=0, label="one patch")
        time.lines[0].set_label(f"one {task.case}")
        time.legend(frameon=False, fontsize="small")
        time.set_ylabel("time (s)")
    make_log(time)  # like T itself: a time proportional to T is a straight line
    for axes, metric in zip(panels, task.sampled, strict=True):
        means = _draw_curve(axes, rows, metric.name, metric.axis_title)
        axes.set_ylim(share_limits(means))
    if task.samples_by_case:
        cases = len(rows) // len({row["samples"] for row in rows})
        time.set_title("mean of 1 case" if cases == 1 else f"mean of {cases} cases", loc="left")
    return figure


def _draw_curve(axes: Axes, rows: Sequence[SampleRow], measure: str, title: str) -> NDArray[np.float64]:
    """Draws the means of a measure, and returns them."""
    counts, means = mean_curve(rows, measure)
    axes.plot(counts, means, "-o", color=TEAL, lw=1.8, ms=5, mew=0)
    axes.set(xlabel="samples T", ylabel=title)
    _tick_at(axes, counts)
    return means


def _tick_at(axes: Axes, counts: NDArray[np.float64]) -> None:
    """A tick at every T, on a scale that keeps 1, 2, 5, 10, ... apart."""
    axes.set_xscale("log")
    axes.set_xticks(counts, [f"{count:g}" for count in counts])
    axes.xaxis.set_minor_locator(NullLocator())
