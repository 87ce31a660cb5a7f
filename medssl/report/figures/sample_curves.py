"""Time, Dice and PAvPU against the number T of Monte Carlo samples, from samples.csv (`medssl samples RUN`)."""

import csv
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray

from medssl.core.errors import DataError
from medssl.core.run_files import SAMPLES
from medssl.report.figures.style import PAGE_WIDTH_IN, TEAL, make_log, share_limits, styled

MEASURES = {"seconds": "time per scan (s)", "dice": "Dice", "pavpu": "PAvPU"}
MEASURES_OF_SCENES = {"seconds": "time per image (s)", "miou": "mIoU", "pavpu": "PAvPU"}
MEASURES_OF_PICTURES = {"seconds": "time per picture (s)", "error": "error", "uce": "UCE"}

SampleRow = dict[str, float]


def read_samples(run_folder: Path, measures: Collection[str] = MEASURES) -> list[SampleRow]:
    """The numbers of samples and `measures` in a run's samples.csv; none where there is no such file.

    Raises DataError where the file is damaged.
    """
    file = run_folder / SAMPLES
    if not file.is_file():
        return []
    with file.open(newline="", encoding="utf-8") as stream:
        reader = csv.DictReader(stream)
        try:
            return [{key: float(row[key]) for key in ("samples", *measures)} for row in reader]
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"{file}, line {reader.line_num}: {error!r} is missing or no number. Run 'medssl samples' again."
            ) from error


def mean_curve(rows: Sequence[SampleRow], measure: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The numbers of samples, rising, and the mean of `measure` over the cases at each."""
    table = np.array([(row["samples"], row[measure]) for row in rows])
    counts = np.unique(table[:, 0])
    return counts, np.array([table[table[:, 0] == count, 1].mean() for count in counts])


@styled
def sample_curves(rows: Sequence[SampleRow], measures: Mapping[str, str] = MEASURES) -> Figure:
    """Three panels, each the mean over the cases against T: time, Dice, PAvPU; or others of `measures`."""
    figure = Figure(figsize=(PAGE_WIDTH_IN, 2.7), layout="constrained")
    panels = figure.subplots(1, 3)
    for axes, (measure, title) in zip(panels, measures.items(), strict=True):
        counts, means = mean_curve(rows, measure)
        axes.plot(counts, means, "-o", color=TEAL, lw=1.8, ms=5, mew=0)
        axes.set(xlabel="samples T", ylabel=title)
        _tick_at(axes, counts)
        if measure == "seconds":
            make_log(axes)  # like T itself: a time proportional to T is a straight line
        else:
            axes.set_ylim(share_limits(means))
    cases = len(rows) // len(counts)
    if measures is MEASURES:
        panels[0].set_title(f"mean of {cases} case{'' if cases == 1 else 's'}", loc="left")
    return figure


def _tick_at(axes: Axes, counts: NDArray[np.float64]) -> None:
    """A tick at every T, on a scale that keeps 1, 2, 5, 10, ... apart."""
    axes.set_xscale("log")
    axes.set_xticks(counts, [f"{count:g}" for count in counts])
    axes.xaxis.set_minor_locator(NullLocator())
