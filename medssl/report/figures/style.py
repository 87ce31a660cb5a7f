"""The look all figures share, and a figure as PNG: no display is needed and no global state is left."""

import io
import math
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

import matplotlib as mpl
import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator
from numpy.typing import ArrayLike

INK, MUTED, GRID = "#1d2939", "#667085", "#e7ebf0"
TEAL, PALE_TEAL, SLATE = "#0f766e", "#9fd3cc", "#8a97a8"
PAGE_WIDTH_IN = 10.4  # at 100 CSS pixels an inch: the text width of report.html
FONTS = ("Inter", "Helvetica Neue", "Arial", "Liberation Sans", "DejaVu Sans")

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


def lower_limit(dice: ArrayLike) -> float:
    """A round lower end for a Dice axis that leaves every value room."""
    values = np.asarray(dice, dtype=float)
    lowest = float(np.nanmin(values)) if np.isfinite(values).any() else 0.0
    return max(0.0, math.floor((lowest - 0.02) * 10) / 10)


def share_limits(values: ArrayLike, least: float = 0.05) -> tuple[float, float]:
    """Limits for an axis of shares (Dice, PAvPU): room for every finite value, at least `least` apart, at most 1.

    Without `least` an axis would show differences in the fourth decimal as mountains.
    """
    finite = np.asarray(values, dtype=float)
    finite = finite[np.isfinite(finite)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    spare = max(0.1 * (high - low), (least - (high - low)) / 2)
    high = min(high + spare, max(1.0, high))
    return max(min(low - spare, high - least), min(0.0, low)), high


def make_log(axes: Axes) -> None:
    """A logarithmic scale of values, with plain numbers at its ticks."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 1000 * low else (1,)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(NullLocator())


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
