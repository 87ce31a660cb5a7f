"""The picture of a case: scan, label, prediction with its errors, and uncertainty, for three slices."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MultipleLocator

from medssl.report.figures.slices import PLANES, Array, CaseVolumes, View, telling_views, zoom
from medssl.report.figures.style import MUTED, PAGE_WIDTH_IN, styled

CONTOURS = ("#2dd4bf", "#7dd3fc", "#c4b5fd", "#f0abfc", "#bef264", "#fde68a")
MISSED, EXTRA, SWAPPED = "#f59e0b", "#f43f5e", "#a78bfa"
UNCERTAINTY = LinearSegmentedColormap.from_list("uncertainty", ["#000000", "#0b3b45", "#0f766e", "#5fc9b4", "#f3fbe9"])
COLUMNS = ("Scan", "Label", "Prediction and errors", "Uncertainty (bits)")

GAP_IN, TITLE_IN, LEGEND_IN, BAR_IN = 0.05, 0.26, 0.34, 0.6
TALLEST = 1.0  # of a picture's width; what is taller is shown with bars at its sides


@styled
def case_panel(volumes: CaseVolumes, structures: Mapping[int, str], window: Sequence[float] | None = None) -> Figure:
    """Three telling slices in four columns, with true proportions, the patient's right on the left.

    structures: class number -> name. window: lowest and highest intensity shown, by default percentiles 1 and 99.
    """
    near = zoom(volumes)
    views = telling_views(near)
    low, high = window or np.percentile(near.image, (1, 99))
    shades = Normalize(low, max(high, low + 1e-6))
    bits = Normalize(0, math.log2(len(structures) + 1))
    figure, rows = _layout([_proportion(view, near) for view in views])
    for axes, view in zip(rows, views, strict=True):
        _draw_row(axes, view, near, shades, bits)
    for first, title in zip(rows[0], COLUMNS, strict=True):
        first.set_title(title, loc="left", pad=5)
    _colour_bar(figure, rows[0][-1], bits)
    _legend(figure, structures)
    return figure


def _draw_row(axes: Sequence[Axes], view: View, volumes: CaseVolumes, shades: Normalize, bits: Normalize) -> None:
    for ax in axes[:3]:
        ax.imshow(view.of(volumes.image), cmap="gray", norm=shades, aspect="auto", interpolation="bilinear")
    prediction = view.of(volumes.prediction)
    label = None if volumes.label is None else view.of(volumes.label)
    if label is None:
        _note(axes[1], "no label")
    else:
        _contour(axes[1], label)
        _draw_errors(axes[2], label, prediction)
    _contour(axes[2], prediction)
    if volumes.entropy is None:
        _note(axes[3], "no uncertainty map stored")
    else:
        axes[3].imshow(view.of(volumes.entropy), cmap=UNCERTAINTY, norm=bits, aspect="auto")
    for ax in axes:
        _fit(ax, prediction.shape, _proportion(view, volumes))
    _describe(axes[0], view)


def _contour(axes: Axes, classes: Array) -> None:
    """Outline every structure of the slice in its own colour."""
    for number in np.unique(classes[classes > 0]):
        # The frame of zeros closes the outline of what touches the border of the picture.
        mask = np.pad(classes == number, 1).astype(float)
        y, x = (np.arange(-1, size + 1) for size in classes.shape)
        axes.contour(x, y, mask, levels=[0.5], colors=[colour(number)], linewidths=1.3)


def _draw_errors(axes: Axes, label: Array, prediction: Array) -> None:
    """Fill what the prediction missed, what it added and where it took one structure for another."""
    kinds = np.zeros(label.shape)
    kinds[(label > 0) & (prediction == 0)] = 1
    kinds[(label == 0) & (prediction > 0)] = 2
    kinds[(label > 0) & (prediction > 0) & (label != prediction)] = 3
    fill = ListedColormap([MISSED, EXTRA, SWAPPED])
    axes.imshow(
        np.ma.masked_equal(kinds, 0), cmap=fill, vmin=1, vmax=3, alpha=0.75, aspect="auto", interpolation="nearest"
    )


def _layout(proportions: Sequence[float]) -> tuple[Figure, list[list[Axes]]]:
    """A figure of four columns, with rows as high as their pictures are."""
    width = (PAGE_WIDTH_IN - BAR_IN - 3 * GAP_IN) / 4
    heights = [width * min(proportion, TALLEST) for proportion in proportions]
    total = TITLE_IN + sum(heights) + GAP_IN * (len(heights) - 1) + LEGEND_IN
    figure = Figure(figsize=(PAGE_WIDTH_IN, total))
    rows, top = [], total - TITLE_IN
    for height in heights:
        lefts = [column * (width + GAP_IN) / PAGE_WIDTH_IN for column in range(4)]
        box = ((top - height) / total, width / PAGE_WIDTH_IN, height / total)
        rows.append([_dark_axes(figure, (left, *box)) for left in lefts])
        top -= height + GAP_IN
    return figure, rows


def _dark_axes(figure: Figure, box: tuple[float, float, float, float]) -> Axes:
    """Empty axes that keep their size: black shows where a picture does not fill them."""
    axes = figure.add_axes(box, facecolor="black", xticks=[], yticks=[])
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    return axes


def _fit(axes: Axes, shape: tuple[int, ...], proportion: float) -> None:
    """Show all of a picture in its true proportion, in axes laid out by _layout."""
    rows, columns = shape
    half = columns / 2 * max(1.0, proportion / TALLEST)
    axes.set(xlim=(columns / 2 - 0.5 - half, columns / 2 - 0.5 + half), ylim=(rows - 0.5, -0.5))


def _proportion(view: View, volumes: CaseVolumes) -> float:
    """Height of the slice over its width, in mm."""
    width, height = view.pixel_mm(volumes.spacing_mm)
    rows, columns = view.of(volumes.image).shape
    return rows * height / (columns * width)


def _describe(axes: Axes, view: View) -> None:
    """Name the slice and the side the patient's right is on."""
    outline = [withStroke(linewidth=2, foreground="black", alpha=0.7)]
    style: dict[str, Any] = {"color": "white", "fontsize": 7.5, "transform": axes.transAxes, "path_effects": outline}
    axes.text(0.025, 0.03, f"{PLANES[view.axis]}, {view.why}", ha="left", va="bottom", **style)
    left, right = ("A", "P") if view.axis == 0 else ("R", "L")
    axes.text(0.025, 0.5, left, ha="left", va="center", **style)
    axes.text(0.975, 0.5, right, ha="right", va="center", **style)


def _note(axes: Axes, text: str) -> None:
    axes.text(0.5, 0.5, text, color="#98a2b3", ha="center", va="center", transform=axes.transAxes)


def _colour_bar(figure: Figure, beside: Axes, bits: Normalize) -> None:
    """A bar at the right of a picture."""
    box = beside.get_position(original=True)
    bar = figure.add_axes((box.x1 + 0.008, box.y0, 0.010, box.height))
    figure.colorbar(ScalarMappable(bits, UNCERTAINTY), cax=bar)
    bar.yaxis.set_major_locator(MultipleLocator(0.5))
    bar.grid(visible=False)
    bar.spines[:].set_visible(False)


def _legend(figure: Figure, structures: Mapping[int, str]) -> None:
    outlines = [Line2D([], [], color=colour(number), lw=2, label=name) for number, name in structures.items()]
    errors = {"missed": MISSED, "added": EXTRA} | ({"wrong structure": SWAPPED} if len(structures) > 1 else {})
    fills = [Patch(color=colour, label=name) for name, colour in errors.items()]
    figure.legend(
        handles=outlines + fills,
        loc="lower left",
        bbox_to_anchor=(-0.004, -0.01),
        ncols=10,
        labelcolor=MUTED,
        handlelength=1.2,
    )


def colour(number: int) -> str:
    """The colour a class is outlined with."""
    return CONTOURS[(int(number) - 1) % len(CONTOURS)]
