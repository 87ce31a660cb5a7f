"""What the page of a run that segments scans shows, and its figures."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from matplotlib.figure import Figure

from medssl.core.errors import MedsslError
from medssl.metrics.catalogue import ASSD, DICE, ECE, HD95, LATENT_SHARE, PAVPU
from medssl.report.figures.cases import calibration_strip, dice_strip, entropy_against_dice
from medssl.report.figures.panels import case_panel
from medssl.report.figures.pictures import picture
from medssl.report.figures.sample_curves import sampling_mode
from medssl.report.figures.slices import load_case
from medssl.report.figures.thesis import thesis_figures
from medssl.report.grids import accuracy_grid, every_case_grid, stat_cell, uncertainty_grid
from medssl.report.health_warnings import health_warnings
from medssl.report.pavpu_region import counted_where
from medssl.report.run import Run
from medssl.report.scrub import without_paths
from medssl.report.tables import SummaryRow, by_case, case_mean, summarise, telling_cases

TEMPLATE = "medssl.report/scan_page.html.j2"
TILES = (DICE, HD95, ASSD, PAVPU, ECE)


def scan_content(run: Run) -> dict[str, Any]:
    """What the template asks for besides the content that all runs share."""
    summary = summarise(run.per_case)
    overall = summary[-1] if summary else None
    return {
        "tiles": [*_tiles(overall), *_latent_tiles(run)],
        "accuracy": accuracy_grid(summary) if summary else None,
        "strip": picture(dice_strip, run.per_case) if summary else None,
        "cases": _telling_cases(run),
        **_uncertainty(run, overall),
        **{name: picture(draw) if draw else None for name, draw in thesis_figures(run).items()},
        "samples_mode": sampling_mode(run.folder),
        "health_warnings": health_warnings(run),
        "every_case": every_case_grid(run.per_case) if run.per_case else None,
    }


def scan_figures(run: Run) -> dict[str, Callable[[], Figure]]:
    """The figures that can be drawn of the run, by name. Raises DataError where a file of the run is damaged."""
    figures = {name: draw for name, draw in thesis_figures(run).items() if draw}
    if run.per_case:
        figures["dice"] = partial(dice_strip, run.per_case)
        figures["entropy_against_dice"] = partial(entropy_against_dice, run.per_case)
    for name, case in telling_cases(run.per_case).items():
        figures[f"case_{name.lower()}"] = partial(_case_figure, run, case)
    return figures


def _case_figure(run: Run, case: str) -> Figure:
    return case_panel(load_case(run, case), run.structures, run.facts.get("window"))


def _tiles(overall: SummaryRow | None) -> list[dict[str, str]]:
    if overall is None:
        return []
    tiles = []
    for metric in TILES:
        stat = overall.stats[metric.name]
        if stat.n:
            cell = stat_cell(stat, metric, 0)
            tiles.append({"title": metric.title, "text": cell.text, "small": cell.small})
    return tiles


def _latent_tiles(run: Run) -> list[dict[str, str]]:
    """How much the latent of a neural process does, if the network has one."""
    if LATENT_SHARE.name not in run.measured:
        return []
    text = LATENT_SHARE.text(run.measured[LATENT_SHARE.name])
    return [{"title": LATENT_SHARE.title, "text": text, "small": ""}]


def _telling_cases(run: Run) -> list[dict[str, Any]]:
    """Best, median and worst case, each once."""
    return [_telling_case(run, case, name) for name, case in telling_cases(run.per_case).items()]


def _telling_case(run: Run, case: str, name: str) -> dict[str, Any]:
    rows = by_case(run.per_case)[case]
    distance_mm = case_mean(rows, HD95)
    caption = f"Dice {DICE.text(case_mean(rows, DICE))}"
    if math.isfinite(distance_mm):
        caption += f", HD95 {HD95.text(distance_mm)} mm"
    content: dict[str, Any] = {"title": f"{name}: {case}", "caption": caption, "image": None, "problem": ""}
    try:
        content["image"] = picture(case_panel, load_case(run, case), run.structures, run.facts.get("window"))
    except MedsslError as error:  # the scans may have moved since; the numbers still stand
        content["problem"] = f"No picture: {without_paths(str(error), run.folder)}"
    return content


def _uncertainty(run: Run, overall: SummaryRow | None) -> dict[str, Any]:
    grid = uncertainty_grid(overall, counted_where(run)) if overall else None
    if grid is None:
        return {"uncertainty": None, "scatter": None, "calibration": None}
    return {
        "uncertainty": grid,
        "scatter": picture(entropy_against_dice, run.per_case),
        "calibration": picture(calibration_strip, run.per_case),
    }
