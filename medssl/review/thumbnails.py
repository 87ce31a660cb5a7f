"""Small pictures of the slices to look at: scan, uncertainty and outlines as layers that a page can switch off."""

import base64
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.image import imsave
from scipy import ndimage

from medssl.data.volumes import read_volume
from medssl.report.figures.panels import colour
from medssl.report.figures.slices import MARGIN_MM, Array, View, to_radiological
from medssl.review.measuring import Measured, read_maps, view_of

PROPORTION = 0.75  # height over width that regions are widened to
LARGEST = 320  # pixels a side; what is larger is made smaller
SHADES = 16  # of uncertainty: fewer shades, smaller files
UNSURE = {0.0: "#fbbf2400", 0.35: "#fbbf2459", 0.7: "#fb718599", 1.0: "#f43f5ecc"}  # the last two digits: opacity
OVERLAY = LinearSegmentedColormap.from_list("unsure", list(UNSURE.items()))

Box = tuple[slice, slice]


@dataclass(frozen=True)
class Layers:
    """A slice in millimetres: data: addresses of scan (None without one) and uncertainty, SVG paths of the outlines.

    marks: what is on the left and on the right. outlines: pairs of colour and path.
    """

    title: str
    marks: tuple[str, str]
    width_mm: float
    height_mm: float
    scan: str | None
    uncertainty: str
    outlines: Sequence[tuple[str, str]]


def slice_layers(measured: Measured, count: int, num_classes: int, window: Sequence[float] | None) -> list[Layers]:
    """The first `count` of the case's uncertain slices, cut to the same region around the structures.

    window: lowest and highest intensity, by default percentiles 1 and 99 of what is shown. Raises DataError as
    read_maps does.
    """
    case, maps = measured.case, read_maps(measured.case)
    views = [view_of(maps.affine, maps.entropy.shape, measured.axis, index) for index in measured.slices[:count]]
    if not views:
        return []
    classes, spacing_mm = to_radiological(maps.segmentation, maps.affine)
    entropy = to_radiological(maps.entropy, maps.affine)[0]
    scan = None if case.image is None else to_radiological(read_volume(case.image).array, maps.affine)[0]
    pixel_mm = views[0].pixel_mm(spacing_mm)
    found = (classes > 0).any(axis=views[0].axis, keepdims=True)
    box = _region(View(views[0].axis, 0, "").of(found), pixel_mm)
    shown = None if scan is None else np.stack([view.of(scan)[box] for view in views])
    low, high = _range(shown, window)
    pictures = []
    for place, view in enumerate(views):
        inside = view.of(classes)[box]
        width, height = _size_mm(inside, pixel_mm)
        bits = np.round(view.of(entropy)[box] / math.log2(num_classes) * SHADES) / SHADES
        pictures.append(
            Layers(
                title=f"{measured.plane} {measured.slices[place]}",
                marks=("A", "P") if view.axis == 0 else ("R", "L"),
                width_mm=width,
                height_mm=height,
                scan=None if shown is None else _address(_smaller(shown[place]), "jpeg", "gray", low, high),
                uncertainty=_address(_smaller(bits), "png", OVERLAY, 0, 1),
                outlines=outlines(inside, pixel_mm),
            )
        )
    return pictures


def outlines(classes: Array, pixel_mm: tuple[float, float]) -> list[tuple[str, str]]:
    """Colour and SVG path (mm from the upper left corner) of every structure of a slice."""
    axes, found = Figure().subplots(), []
    for number in np.unique(classes[classes > 0]):
        # the frame of zeros closes the outline of what touches the border
        lines = axes.contour(np.pad(classes == number, 1).astype(float), levels=[0.5]).allsegs[0]
        parts = [" ".join(f"{x:.4g},{y:.4g}" for x, y in (line - 0.5) * pixel_mm) for line in lines]
        found.append((colour(int(number)), "".join(f"M{part}Z" for part in parts)))
    return found


def legend(names: Mapping[int, str]) -> list[tuple[str, str]]:
    """Colour and name of every structure, by number."""
    return [(colour(number), names[number]) for number in sorted(names)]


def gradient() -> str:
    """The colours of uncertainty, none to all there is, as the value of a CSS background."""
    stops = ", ".join(f"{shade} {place:.0%}" for place, shade in UNSURE.items())
    return f"linear-gradient(90deg, {stops}), #000"


def _region(found: Array, pixel_mm: tuple[float, float]) -> Box:
    """Rows and columns of the structures with a margin, widened to PROPORTION where the slice has room; else all."""
    if not found.any():
        return slice(0, found.shape[0]), slice(0, found.shape[1])
    spans = []
    for axis, size in enumerate(reversed(pixel_mm)):
        places = np.flatnonzero(found.any(axis=1 - axis))
        spans.append([(places[0] * size - MARGIN_MM), (places[-1] + 1) * size + MARGIN_MM])
    height, width = (stop - start for start, stop in spans)
    spare = (max(height, width * PROPORTION) - height, max(width, height / PROPORTION) - width)
    rows, columns = (
        slice(max(0, math.floor((start - more / 2) / size)), min(length, math.ceil((stop + more / 2) / size)))
        for (start, stop), more, size, length in zip(spans, spare, reversed(pixel_mm), found.shape, strict=True)
    )
    return rows, columns


def _size_mm(picture: Array, pixel_mm: tuple[float, float]) -> tuple[float, float]:
    rows, columns = picture.shape
    return round(columns * pixel_mm[0], 3), round(rows * pixel_mm[1], 3)


def _range(shown: Array | None, window: Sequence[float] | None) -> tuple[float, float]:
    if shown is None:
        return 0.0, 1.0
    low, high = window or np.percentile(shown[np.isfinite(shown)], (1, 99))
    return float(low), max(float(high), float(low) + 1e-6)


def _smaller(picture: Array) -> Array:
    """The picture with at most LARGEST pixels a side, each the mean of those it stands for."""
    scale = min(1.0, LARGEST / max(picture.shape))
    if scale == 1:
        return picture
    smooth = ndimage.uniform_filter(picture.astype(np.float32), size=round(1 / scale))
    return ndimage.zoom(smooth, scale, order=1, grid_mode=True, mode="nearest")


def _address(picture: Array, kind: str, colours: str | Colormap, low: float, high: float) -> str:
    """The picture as a data: address. kind: png or jpeg."""
    buffer = io.BytesIO()
    options: dict[str, Any] = {"pil_kwargs": {"quality": 82}} if kind == "jpeg" else {"metadata": {"Software": None}}
    imsave(buffer, np.nan_to_num(picture), vmin=low, vmax=high, cmap=colours, format=kind, **options)
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"
