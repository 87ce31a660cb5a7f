"""A figure as it stands in a page: inside of the file, at the size it was drawn for."""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from medssl.report.figures.style import figure_png


@dataclass(frozen=True)
class Picture:
    """A PNG as a data: address, and its width on the page in CSS pixels."""

    address: str
    width: int


def picture(draw: Callable[..., Figure], *arguments: Any) -> Picture:
    """What `draw` draws from the arguments."""
    figure = draw(*arguments)
    width = round(figure.get_figwidth() * 100)
    return Picture("data:image/png;base64," + base64.b64encode(figure_png(figure)).decode(), width)
