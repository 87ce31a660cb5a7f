"""What the page of a run that segments scenes shows, and its figures."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from medssl.core.errors import DataError
from medssl.metrics.catalogue import LATENT_SHARE, PAVPU
from medssl.report.figures.pictures import picture
from medssl.report.figures.sample_curves import read_samples, sample_curves
from medssl.report.figures.style import INK, PAGE_WIDTH_IN, styled
from medssl.report.grids import Cell, Column, Grid, GridRow
from medssl.report.run import PerCaseRow, Run
from natural_image_ext.data.scene_splits import read_scene_split
from natural_image_ext.data.scene_views import centre_of, read_scene
from natural_image_ext.data.scenes import VOID, Scenes
from natural_image_ext.inference.scene_evaluation import prediction_file
from natural_image_ext.metrics import IMAGE_ACCURACY, MIOU, PIXEL_ACCURACY, SCENE_ENTROPY
from natural_image_ext.report.parts import percent_tiles, picture_or_problem

TEMPLATE = "natural_image_ext.report/scenes_page.html.j2"
TILES = (MIOU, PIXEL_ACCURACY, PAVPU, LATENT_SHARE)
IMAGE_COLUMNS = (MIOU, IMAGE_ACCURACY, PAVPU, SCENE_ENTROPY)
PANEL_TITLES = ("image", "label", "prediction", "uncertainty")


def scenes_content(run: Run) -> dict[str, Any]:
    """What the template asks for besides the content that all runs share."""
    panels, problem = picture_or_problem(run, scene_panels)
    measured, figures = run.measured, scene_figures(run)
    return {
        "samples": picture(figures["samples"]) if "samples" in figures else None,
        "tiles": percent_tiles(run, TILES),
        "classes": _classes_grid(measured["classes"]) if measured.get("classes") else None,
        "panels": panels,
        "problem": problem,
        "images": _images_grid(run.per_case) if run.per_case else None,
    }


def scene_figures(run: Run) -> dict[str, Callable[[], Figure]]:
    """The figures that can be drawn of the run, by name."""
    figures: dict[str, Callable[[], Figure]] = {}
    if run.per_case:
        figures["scenes"] = partial(scene_panels, run)
    samples = read_samples(run.folder, run.task)
    if samples:
        figures["samples"] = partial(sample_curves, samples, run.task)
    return figures


@styled
def scene_panels(run: Run) -> Figure:
    """Best, median and worst test image. Raises DataError where images or predictions are not there any more."""
    chosen = telling_images(run.per_case)
    if not chosen:
        raise DataError(f"{run.folder}: no test image has a mask.")
    figure = Figure(figsize=(PAGE_WIDTH_IN, 0.3 + 1.95 * len(chosen)), layout="constrained")
    grid = figure.subplots(len(chosen), 4, squeeze=False)
    colours, scenes = _colours(len(run.facts["classes"])), read_scene_split(run.folder / "split.json").test
    for axes, (title, row) in zip(grid, chosen.items(), strict=True):
        image, label, classes, entropy = _maps(run, scenes, row["case"])
        axes[0].imshow(image)
        for place, values in ((1, label), (2, classes)):
            axes[place].imshow(values, cmap=colours, vmin=0, vmax=VOID, interpolation="nearest")
        axes[3].imshow(entropy, cmap="magma", vmin=0, vmax=math.log(len(run.facts["classes"])))
        axes[0].set_ylabel(f"{title}, mIoU {row['miou']:.2f}", color=INK)
        for cell in axes:
            cell.set(xticks=[], yticks=[])
            cell.grid(visible=False)
            cell.spines[:].set_visible(False)
    for cell, title in zip(grid[0], PANEL_TITLES, strict=True):
        cell.set_title(title)
    return figure


def telling_images(rows: list[PerCaseRow]) -> dict[str, PerCaseRow]:
    """The rows of the best, the median and the worst image; below three images those there are."""
    order = sorted((row for row in rows if math.isfinite(row["miou"])), key=lambda row: (-row["miou"], row["case"]))
    places = {"best": 0, "median": len(order) // 2, "worst": len(order) - 1}
    chosen: dict[str, PerCaseRow] = {}
    for name, place in places.items():
        if order and order[place] not in chosen.values():
            chosen[name] = order[place]
    return chosen


def _maps(run: Run, scenes: Scenes, case: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Image (H, W, 3), label, predicted classes and entropy (H, W) of one of the test images."""
    file = prediction_file(run.folder / "evaluation" / "predictions", case)
    if not file.is_file():
        raise DataError(f"{file}: no such file. Evaluate again.")
    stored = np.load(file)
    image, mask = centre_of(
        *read_scene(scenes, scenes.ids.index(case), len(run.facts["classes"]), int(run.facts["void"])),
        run.settings.get("crop_to"),
    )
    return image.permute(1, 2, 0).numpy(), mask.numpy(), stored["classes"], stored["entropy"].astype(np.float32)


def _colours(number: int) -> ListedColormap:
    """A colour for each class, white for pixels without one."""
    base = mpl.colormaps["tab20"].colors + mpl.colormaps["tab20b"].colors  # type: ignore[attr-defined]
    table = [base[place % len(base)] for place in range(number)] + [(1.0, 1.0, 1.0)] * (VOID + 1 - number)
    return ListedColormap(table)


def _classes_grid(classes: dict[str, float]) -> Grid:
    """One line per class, the worst first; classes the test images do not have last."""
    rows = []
    for name, iou in sorted(classes.items(), key=lambda pair: (math.isnan(pair[1]), pair[1])):
        percent = 100 * iou
        cell = Cell("not in the test images") if math.isnan(iou) else Cell(f"{percent:.1f}", bar=round(percent))
        rows.append(GridRow([Cell(name), cell]))
    return Grid([Column("Class", "text"), Column("IoU (%)")], rows)


def _images_grid(rows: list[PerCaseRow]) -> Grid:
    order = sorted(rows, key=lambda row: (math.isnan(row["miou"]), row["miou"]))
    lines = [
        GridRow([Cell(row["case"]), *(Cell(f"{row[metric.name]:.3f}") for metric in IMAGE_COLUMNS)]) for row in order
    ]
    return Grid([Column("Image", "text"), *(Column(metric.title) for metric in IMAGE_COLUMNS)], lines)
