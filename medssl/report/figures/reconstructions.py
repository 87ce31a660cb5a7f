"""Reconstructions of LRL beside what it saw (thesis, appendix A), from the run's reconstructions.npz."""

import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from medssl.core.errors import DataError
from medssl.core.run_files import RECONSTRUCTIONS
from medssl.report.figures.slices import Array
from medssl.report.figures.style import MUTED, PAGE_WIDTH_IN, styled

ROWS = ("input", "reconstruction")
MOST, LONGEST_ID = 8, 17
GAP_IN, TITLE_IN, SIDE_IN = 0.05, 0.24, 0.24


@dataclass(frozen=True)
class Reconstructions:
    """inputs, reconstructions: (n, H, W) in [-1, 1], axes towards the patient's right and front. ids: n cases."""

    inputs: Array
    reconstructions: Array
    ids: list[str]


def load_reconstructions(run_folder: Path) -> Reconstructions | None:
    """The run's reconstructions, None where it has none. Raises DataError where the file is damaged."""
    file = run_folder / RECONSTRUCTIONS
    if not file.is_file():
        return None
    try:
        with np.load(file, allow_pickle=False) as arrays:
            stored = Reconstructions(arrays["inputs"], arrays["reconstructions"], [str(name) for name in arrays["ids"]])
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"{file}: damaged ({error}). Remove it, or train the first stage again.") from error
    shapes = stored.inputs.shape, stored.reconstructions.shape
    if shapes[0] != shapes[1] or len(shapes[0]) != 3 or shapes[0][0] != len(stored.ids):
        raise DataError(f"{file}: inputs {shapes[0]}, reconstructions {shapes[1]}, {len(stored.ids)} ids do not match.")
    return stored if stored.ids else None


@styled
def reconstruction_rows(stored: Reconstructions) -> Figure:
    """Inputs in the first row, their reconstructions in the second, at most eight; the patient's right is left."""
    count = min(MOST, len(stored.ids))
    width = (PAGE_WIDTH_IN - SIDE_IN - (MOST - 1) * GAP_IN) / MOST
    height = width * stored.inputs.shape[2] / stored.inputs.shape[1]
    size = SIDE_IN + count * width + (count - 1) * GAP_IN, TITLE_IN + 2 * height + GAP_IN
    figure = Figure(figsize=size)
    for row, pictures in enumerate((stored.inputs, stored.reconstructions)):
        for column in range(count):
            left, bottom = SIDE_IN + column * (width + GAP_IN), (1 - row) * (height + GAP_IN)
            box = (left / size[0], bottom / size[1], width / size[0], height / size[1])
            axes = figure.add_axes(box, xticks=[], yticks=[])
            _draw(axes, pictures[column])
            if column == 0:
                axes.set_ylabel(ROWS[row], labelpad=4)
            if row == 0:
                axes.set_title(_short(stored.ids[column]), fontsize=7, color=MUTED, pad=4)
    return figure


def _draw(axes: Axes, picture: Array) -> None:
    # rows of the array go to the patient's right, columns to the front
    axes.imshow(np.fliplr(np.rot90(picture)), cmap="gray", vmin=-1, vmax=1, aspect="auto", interpolation="bilinear")
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_ID else f"{name[:6]}…{name[7 - LONGEST_ID :]}"
