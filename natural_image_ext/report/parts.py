"""Pieces that the pages of natural-image runs share."""

from collections.abc import Callable, Mapping

from matplotlib.figure import Figure

from medssl.core.errors import MedsslError
from medssl.report.figures.pictures import Picture, picture
from medssl.report.runs import Run
from medssl.report.scrub import without_paths


def percent_tiles(run: Run, titles: Mapping[str, str]) -> list[dict[str, str]]:
    """The run's measures of those names, in percent."""
    return [
        {"title": title, "text": f"{100 * run.measured[metric]:.2f} %", "small": ""}
        for metric, title in titles.items()
        if metric in run.measured
    ]


def picture_or_problem(run: Run, draw: Callable[[Run], Figure]) -> tuple[Picture | None, str]:
    """What `draw` draws of the data set, or why it cannot; neither where the run has no evaluation."""
    if not run.per_case:
        return None, ""
    try:
        return picture(draw, run), ""
    except (MedsslError, OSError) as error:  # the data may have moved since; the numbers still stand
        return None, f"No pictures: {without_paths(str(error), run.folder)}"
