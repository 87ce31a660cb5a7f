"""Where windows stand on a scan, and how many Monte Carlo samples each of them draws: the plan of a prediction."""

import itertools
import math
from collections.abc import Sequence
from types import EllipsisType

import numpy as np

Start = tuple[int, ...]
Plan = dict[Start, int]  # first voxel of a window -> its samples, in the order of the voxels
Box = tuple[EllipsisType | slice, ...]


def grid_plan(size: Sequence[int], window: Sequence[int], stride: Sequence[int], samples: int) -> Plan:
    """`samples` at every window of the regular grid, as MONAI's sliding windows: one stride apart, the last one flush.

    size: of the scan, at least `window` along every axis.
    """
    axes = [regular_starts(*axis) for axis in zip(size, window, stride, strict=True)]
    return dict.fromkeys(itertools.product(*axes), samples)


def overlap_plan(size: Sequence[int], window: Sequence[int], stride: Sequence[int], samples: int) -> Plan:
    """The windows of `grid_plan` with few passes: where windows overlap, they are samples of what they share.

    Every voxel gets at least `samples`, and a mean as certain as that of `samples` passes of one window. In a corner of
    the scan, where a voxel lies in one window, that one draws all samples; windows inside draw one or a few.
    """
    axes = [regular_starts(*axis) for axis in zip(size, window, stride, strict=True)]
    counts = few_samples(axes, size, window, samples)
    return {start: int(count) for start, count in zip(itertools.product(*axes), counts.flat, strict=True)}


def box(start: Sequence[int], size: Sequence[int]) -> Box:
    """Index of the `size` voxels from `start` on, in the last axes of a tensor."""
    return (..., *[slice(first, first + length) for first, length in zip(start, size, strict=True)])


def regular_starts(length: int, window: int, stride: int) -> list[int]:
    """Starts one stride apart, at most a window, so that no voxel lies between; the last window ends with the axis."""
    apart = min(stride, window)
    steps = math.ceil((length - window) / apart)
    return [min(step * apart, length - window) for step in range(steps + 1)]


def few_samples(axes: Sequence[Sequence[int]], size: Sequence[int], window: Sequence[int], samples: int) -> np.ndarray:
    """Samples k of each window, at least one: as few as leave every voxel enough (one axis for each of `axes`).

    Enough is that the mean over the m windows of a voxel, which count alike, varies no more than that of `samples`
    passes: sum of 1 / k <= m^2 / `samples`. It follows that these are at least `samples` passes: their number is at
    least m^2 / sum of 1 / k. Where the fewest windows lie samples are added first, one by one to the window that has
    the fewest, of such to the one that lies most alone.
    """
    covers = [_cover(*axis) for axis in zip(axes, size, window, strict=True)]
    counts = np.ones([len(starts) for starts in axes], dtype=np.int64)
    windows = np.einsum("abc,ia,jb,kc->ijk", counts, *covers, optimize=True)
    alone = np.einsum("ijk,ia,jb,kc->abc", 1 / windows**2, *covers, optimize=True)
    first = alone / (2 * alone.max())
    for cell in zip(*np.unravel_index(windows.argsort(axis=None, kind="stable"), windows.shape), strict=True):
        over = tuple(_covering_windows(cover[place]) for cover, place in zip(covers, cell, strict=True))
        while (1 / counts[over]).sum() > windows[cell] ** 2 / samples + 1e-9:
            fewest = np.unravel_index((counts[over] - first[over]).argmin(), counts[over].shape)
            counts[over][fewest] += 1
    return counts


def _covering_windows(is_covered: np.ndarray) -> slice:
    """The windows along an axis that cover a cell, from the first to the last; is_covered: its row of `_cover`."""
    covering = is_covered.nonzero()[0]
    first, last = covering[0], covering[-1]
    return slice(first, last + 1)


def _cover(starts: Sequence[int], length: int, window: int) -> np.ndarray:
    """(cells, starts): 1 where the window covers the cell; the axis is cut into cells where windows begin and end."""
    edges = np.unique([0, length, *starts, *(start + window for start in starts)])[:-1, None]
    return ((edges >= starts) & (edges < np.asarray(starts) + window)).astype(np.int64)
