"""The charts of a report, as matplotlib Figures that need no display and leave no global state."""

import io
import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec

import matplotlib as mpl
import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import ArrayLike, NDArray
from scipy.stats import spearmanr

from medssl.report.runs import PerCaseRow, Run
from medssl.report.tables import Stat, by_case, case_mean

INK, MUTED, GRID = "#1d2939", "#667085", "#e7ebf0"
TEAL, PALE_TEAL, SLATE = "#0f766e", "#9fd3cc", "#8a97a8"
PAGE_WIDTH_IN = 10.4  # at 100 CSS pixels an inch: the text width of report.html
FONTS = ("Inter", "Helvetica Neue", "Arial", "Liberation Sans", "DejaVu Sans")
MAX_POINTS = 3000  # more than a figure has pixels

P = ParamSpec("P")


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """`draw` in the report's style, whatever the caller's matplotlib settings are."""

    @wraps(draw)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with mpl.rc_context(_style()):
            figure = draw(*args, **kwargs)
            figure.draw_without_rendering()  # ticks take the style of the moment they are made
            return figure

    return wrapper


def figure_png(figure: Figure, dpi: int = 200) -> bytes:
    """The figure as PNG, by default at twice the size it has on the page."""
    buffer = io.BytesIO()
    FigureCanvasAgg(figure)
    with mpl.rc_context(_style()):
        figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
    return buffer.getvalue()


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


@styled
def dice_strip(per_case: Sequence[PerCaseRow]) -> Figure:
    """Dice of every case, one strip per structure; the bar is the mean, rings are missed cases."""
    structures = list(dict.fromkeys(row["structure"] for row in per_case))
    figure = Figure(figsize=(PAGE_WIDTH_IN, 1.0 + 0.55 * len(structures)), layout="constrained")
    axes = figure.subplots()
    for height, structure in enumerate(structures):
        rows = [row for row in per_case if row["structure"] == structure and math.isfinite(row["dice"])]
        dice = np.array([row["dice"] for row in rows])
        missed = np.array([row.get("empty") == "prediction" for row in rows], dtype=bool)
        level = height + _spread(len(rows))
        axes.plot(dice[~missed], level[~missed], "o", ms=6, color=TEAL, alpha=0.6, mew=0)
        axes.plot(dice[missed], level[missed], "o", ms=6, mfc="white", mec=TEAL)
        if dice.size:
            axes.plot([dice.mean()] * 2, [height - 0.34, height + 0.34], color=INK, lw=2, solid_capstyle="butt")
    axes.set(yticks=range(len(structures)), yticklabels=structures, ylim=(len(structures) - 0.5, -0.5), xlabel="Dice")
    lowest = _lower_limit([row["dice"] for row in per_case])
    axes.set_xlim(lowest - 0.02 * (1 - lowest), 1.0 + 0.01 * (1 - lowest))
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    return figure


@styled
def entropy_against_dice(per_case: Sequence[PerCaseRow]) -> Figure:
    """Mean entropy of every case against its mean Dice, with Spearman's rank correlation."""
    cases = by_case(per_case).values()
    pairs = np.array([(case_mean(rows, "mean_entropy_bits"), case_mean(rows, "dice")) for rows in cases]).reshape(-1, 2)
    entropy, dice = pairs[np.isfinite(pairs).all(axis=1)].T
    figure = Figure(figsize=(5.1, 3.4), layout="constrained")
    axes = figure.subplots()
    axes.plot(entropy, dice, "o", ms=7, color=TEAL, alpha=0.65, mew=0)
    axes.set(xlabel="mean entropy (bits per voxel)", ylabel="Dice")
    axes.margins(0.08)
    if entropy.size > 2 and np.ptp(entropy) > 0 and np.ptp(dice) > 0:
        rho = spearmanr(entropy, dice).statistic
        axes.set_title(f"Spearman ρ = {rho:.2f}, {entropy.size} cases".replace("-", "−"), loc="left")
    return figure


@styled
def calibration_strip(per_case: Sequence[PerCaseRow]) -> Figure:
    """PAvPU, UCE and ECE of every case, side by side; the bar is the mean."""
    cases = by_case(per_case).values()
    figure = Figure(figsize=(5.1, 3.4), layout="constrained")
    for axes, metric in zip(figure.subplots(1, 3), ("pavpu", "uce", "ece"), strict=True):
        values = np.array([case_mean(rows, metric) for rows in cases])
        values = values[np.isfinite(values)]
        axes.plot(_spread(values.size), values, "o", ms=6, color=TEAL, alpha=0.6, mew=0)
        if values.size:
            axes.plot([-0.34, 0.34], [Stat.of(values).mean] * 2, color=INK, lw=2, solid_capstyle="butt")
        axes.set(xlim=(-0.7, 0.7), xticks=[])
        axes.set_title({"pavpu": "PAvPU", "uce": "UCE", "ece": "ECE"}[metric])
        axes.margins(y=0.12)
        axes.locator_params(axis="y", nbins=5)
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
        axes.set_ylim(_lower_limit(dice), 1.0)


def _series(records: Sequence[dict[str, Any]], key: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Steps and values of a key; NaN where a record lacks it."""
    steps = [record.get("step", record.get("epoch", 0)) for record in records]
    values = [math.nan if record.get(key) is None else record[key] for record in records]
    return np.array(steps, dtype=float), np.array(values, dtype=float)


def _spread(count: int) -> NDArray[np.float64]:
    """Offsets in [-0.22, 0.22] that keep neighbouring points apart, the same at every call."""
    return 0.22 * (2 * ((np.arange(count) * 0.618034 + 0.5) % 1) - 1)


def _lower_limit(dice: ArrayLike) -> float:
    """A round lower end for a Dice axis that leaves every value room."""
    values = np.asarray(dice, dtype=float)
    lowest = float(np.nanmin(values)) if np.isfinite(values).any() else 0.0
    return max(0.0, math.floor((lowest - 0.02) * 10) / 10)


def _style() -> Any:
    known = set(font_manager.get_font_names())
    return {
        "font.family": next(font for font in FONTS if font in known),
        "font.size": 9,
        "text.color": INK,
        "axes.labelcolor": MUTED,
        "axes.edgecolor": "#c5ccd6",
        "axes.titlesize": 9,
        "axes.titlecolor": MUTED,
        "axes.linewidth": 0.8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": GRID,
        "grid.linewidth": 0.8,
        "xtick.color": MUTED,
        "ytick.color": MUTED,
        "xtick.labelsize": 8,
        "ytick.labelsize": 8,
        "legend.frameon": False,
        "legend.fontsize": 8,
        "figure.facecolor": "white",
        "text.hinting": "no_hinting",  # hinted digits look like those of a serif font
    }
