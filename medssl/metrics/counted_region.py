"""Where voxels count: in the whole scan, in the body, or near the structures.

Air is easy: a measure over the whole scan, such as PAvPU, is near 1 whatever the network does.
"""

from collections.abc import Sequence

import numpy as np
from scipy import ndimage

from medssl.core.errors import DataError
from medssl.metrics.inputs import Array, Values, as_array, positive_spacing_mm

REGIONS = ("scan", "body", "structures")
AIR_BELOW_HU = -500.0  # between lung or air (-1000 to -600) and fat (-120)
GREY_LEVELS = 256


def body_region(scan: Values, is_ct: bool) -> Array:
    """The mask of the body in a scan (X, Y, Z): the largest bright piece, with its holes.

    is_ct: values are Hounsfield units, and all above -500 is body; else Otsu's threshold parts bright from dark. Holes
    are filled slice by slice along each axis, so that lungs and bowel gas belong to the body. An even scan is body.
    """
    values = as_array(scan).astype(np.float32)
    bright = values > (AIR_BELOW_HU if is_ct else otsu_threshold(values))
    if not bright.any():
        return np.ones(values.shape, dtype=bool)
    pieces, count = ndimage.label(bright)
    if count > 1:
        sizes = np.bincount(pieces.ravel())
        sizes[0] = 0
        bright = pieces == sizes.argmax()
    return _without_holes(bright)


def near_structures(label: Values, spacing_mm: Sequence[float] | Values, distance_mm: float) -> Array:
    """The mask of the voxels within `distance_mm` of a structure, itself among them; label: 0 is the background.

    The distance is that of the voxels' centres. Without a structure the mask is empty.
    """
    structures = as_array(label) > 0
    spacing = positive_spacing_mm(spacing_mm, structures.ndim)
    near = np.zeros(structures.shape, dtype=bool)
    if not structures.any():
        return near
    reach = np.ceil(distance_mm / spacing).astype(int)
    occupied = np.argwhere(structures)
    low = np.maximum(occupied.min(axis=0) - reach, 0)
    high = occupied.max(axis=0) + reach + 1
    box = tuple(slice(start, stop) for start, stop in zip(low, high, strict=True))  # nothing beyond it is near
    near[box] = ndimage.distance_transform_edt(~structures[box], sampling=spacing) <= distance_mm
    return near


def otsu_threshold(values: Array) -> float:
    """The threshold that parts the values into two groups with the largest variance between them (Otsu, 1979)."""
    if not np.isfinite(values).all():
        raise DataError("scan: holds NaN or infinite values, expected finite ones. 'medssl check-data' names the file.")
    counts, edges = np.histogram(values, bins=GREY_LEVELS)
    centres = (edges[:-1] + edges[1:]) / 2
    below = np.cumsum(counts)[:-1]
    above = values.size - below
    sums = np.cumsum(counts * centres)
    with np.errstate(divide="ignore", invalid="ignore"):
        between = below * above * (sums[:-1] / below - (sums[-1] - sums[:-1]) / above) ** 2
    return float(edges[1:-1][np.nan_to_num(between).argmax()])


def _without_holes(mask: Array) -> Array:
    filled = mask.copy()
    for axis in range(mask.ndim):
        for index in range(mask.shape[axis]):
            place = (slice(None),) * axis + (index,)
            filled[place] |= ndimage.binary_fill_holes(mask[place])
    return filled
