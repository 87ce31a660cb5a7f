"""What the page of a classification run shows, and its figures."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from matplotlib.figure import Figure

from medssl.metrics.catalogue import LATENT_SHARE
from medssl.report.figures.pictures import picture
from medssl.report.figures.sample_curves import read_samples, sample_curves
from medssl.report.grids import Cell, Column, Grid, GridRow
from medssl.report.run import Run
from natural_image_ext.report.figures import accepted_share, calibration, class_uncertainty
from natural_image_ext.report.parts import percent_tiles, picture_or_problem
from natural_image_ext.report.telling import telling_pictures

TEMPLATE = "natural_image_ext.report/pictures_page.html.j2"


def pictures_content(run: Run) -> dict[str, Any]:
    """What the template asks for besides the content that all runs share."""
    shown, problem = picture_or_problem(run, telling_pictures)
    drawn = {name: picture(draw) for name, draw in picture_figures(run, telling=False).items()}
    return {
        "tiles": percent_tiles(run, (*run.task.percent, LATENT_SHARE)),
        "classes": _classes_grid(run) if run.measured.get("classes") else None,
        "telling": shown,
        "problem": problem,
        "class_uncertainty": drawn.get("class_uncertainty"),
        "calibration": drawn.get("calibration"),
        "accepted": drawn.get("accepted_share"),
        "samples": drawn.get("samples"),
    }


def picture_figures(run: Run, telling: bool = True) -> dict[str, Callable[[], Figure]]:
    """The figures that can be drawn of the run, by name; telling: with pictures of the data set, if they are there."""
    figures: dict[str, Callable[[], Figure]] = {}
    if run.measured.get("classes"):
        figures |= {"class_uncertainty": partial(class_uncertainty, run), "calibration": partial(calibration, run)}
    samples = read_samples(run.folder, run.task)
    if samples:
        figures["samples"] = partial(sample_curves, samples, run.task)
    if any("accepted" in record for record in run.records("step")):
        figures["accepted_share"] = partial(accepted_share, run)
    if telling and run.per_case:
        figures["telling_pictures"] = partial(telling_pictures, run)
    return figures


def _classes_grid(run: Run) -> Grid:
    """One line per class, the least accurate first."""
    columns = [Column("Class", "text"), Column("Accuracy (%)"), Column("Uncertainty (nats)"), Column("Pictures")]
    classes: dict[str, dict[str, float]] = run.measured["classes"]
    counts = Counter(row["label"] for row in run.per_case)
    rows = []
    for name, values in sorted(classes.items(), key=lambda pair: pair[1]["accuracy"]):
        accuracy, unsure = 100 * values["accuracy"], values["mean_uncertainty_nats"]
        bar = Cell(f"{accuracy:.1f}", bar=round(accuracy))
        rows.append(GridRow([Cell(name), bar, Cell(f"{unsure:.3f}"), Cell(str(counts[name]))]))
    return Grid(columns, rows)
