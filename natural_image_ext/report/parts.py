"""Pieces that the pages of natural-image runs share."""

from collections.abc import Callable, Sequence

from matplotlib.figure import Figure

from medssl.core.errors import MedsslError
from medssl.metrics.catalogue import Metric
from medssl.report.figures.pictures import Picture, picture
from medssl.report.run import Run
from medssl.report.scrub import without_paths


def percent_tiles(run: Run, metrics: Sequence[Metric]) -> list[dict[str, str]]:
    """Those of the metrics that were measured of the run, in percent."""
    return [
        {"title": metric.title, "text": f"{100 * run.measured[metric.name]:.2f} %", "small": ""}
        for metric in metrics
        if metric.name in run.measured
    ]


def picture_or_problem(run: Run, draw: Callable[[Run], Figure]) -> tuple[Picture | None, str]:
    """What `draw` draws of the data set, or why it cannot; neither where the run has no evaluation."""
    if not run.per_case:
        return None, ""
    try:
        return picture(draw, run), ""
    except (MedsslError, OSError) as error:  # the data may have moved since; the numbers still stand
        return None, f"No pictures: {without_paths(str(error), run.folder)}"
