"""The health of a generative training: does the latent still say something, are the pseudo-labels any good?"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from medssl.report.figures.style import PAGE_WIDTH_IN, TEAL, make_log, share_limits, styled
from medssl.report.figures.training import (
    Record,
    Values,
    by_stage,
    draw_smoothed,
    mark_stages,
    series,
)
from medssl.report.run import Run

LATENT = {
    "kl": "KL",
    "mse": "reconstruction error (MSE)",
    "latent_variance": "latent variance",
    "latent_mean_spread": "spread of latent means between slices",
    "v_squared": "v²",
}
HIDDEN_QUALITY = "pseudo_label_dice"
TITLES = {**LATENT, HIDDEN_QUALITY: "Dice of pseudo-labels, hidden labels"}
COLUMNS, FEW, LOG_RATIO = 3, 30, 100


def health_records(run: Run) -> dict[str, list[Record]]:
    """The records that have each sign of health, in step order, only of signs that are there.

    Signs of the latent are those of its own stage, of single steps or, where steps lack them, of epochs; the quality
    of pseudo-labels is measured with labels that training does not see.
    """
    signs: dict[str, list[Record]] = {}
    for key in TITLES:
        kinds = [run.records("step"), run.records("epoch")]
        if key == HIDDEN_QUALITY:
            kinds = [run.records("health"), run.records("validation")]
        having = [[r for r in records if key in r and _fits(key, r)] for records in kinds]
        signs[key] = next((records for records in having if records), [])
    return {key: records for key, records in signs.items() if records}


def _fits(key: str, record: Record) -> bool:
    return key == HIDDEN_QUALITY or record.get("stage", "latent") == "latent"


@styled
def training_health(signs: Mapping[str, Sequence[Record]], starts: Mapping[str, float]) -> Figure:
    """A small panel for each sign of health_records, against the step. starts: the first step of each stage."""
    columns = min(COLUMNS, len(signs))
    rows = math.ceil(len(signs) / columns)
    figure = Figure(figsize=(PAGE_WIDTH_IN * columns / COLUMNS, 0.1 + 1.9 * rows), layout="constrained")
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes, (key, records) in zip(panels, signs.items(), strict=False):
        _draw_sign(axes, key, records)
        axes.set_title(TITLES[key], loc="left", pad=16 if len(by_stage(records)) > 1 else None)
        mark_stages(axes, records, starts)
    for axes in panels[len(signs) :]:
        axes.remove()
    return figure


def _draw_sign(axes: Axes, key: str, records: Sequence[Record]) -> None:
    at, values = series(records, key)
    if at.size < FEW:
        axes.plot(at, values, "-o", ms=4, color=TEAL, lw=1.8, mew=0)
    else:
        draw_smoothed(axes, at, values)
    axes.set_xlabel("step")
    axes.locator_params(nbins=6)
    if key == HIDDEN_QUALITY:
        axes.set_ylim(share_limits(values))
    else:
        _show_collapse(axes, values[np.isfinite(values)])


def _show_collapse(axes: Axes, values: Values) -> None:
    """Zero, or many orders of size, within sight."""
    if values.size and values.min() > 0 and values.max() > LOG_RATIO * values.min():
        make_log(axes)
    elif values.size and values.min() >= 0:
        axes.set_ylim(bottom=0)
