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


def overlap_plan(size: Sequence[int], window: Sequence[int], samples: int) -> Plan:
    """Few passes that give every voxel at least `samples`: overlapping windows are samples of what they share.

    Windows overlap so far that inside of a large scan one sample of each is enough; more are drawn where voxels lie in
    fewer windows, in a corner all of them. size: of the scan, (height, width, depth), at least `window`.
    """
    divisors = (*[max(2, math.ceil(math.sqrt(samples / 2)))] * 2, 2)
    axes = [even_starts(length, w, max(1, w // d)) for length, w, d in zip(size, window, divisors, strict=True)]
    counts = fill_deficits(axes, size, window, samples)
    return {start: int(count) for start, count in zip(itertools.product(*axes), counts.flat, strict=True)}


def box(start: Sequence[int], size: Sequence[int]) -> Box:
    """Index of the `size` voxels from `start` on, in the last axes of a tensor."""
    return (..., *[slice(first, first + length) for first, length in zip(start, size, strict=True)])


def regular_starts(length: int, window: int, stride: int) -> list[int]:
    """Starts one stride apart; the last window ends with the axis."""
    steps = math.ceil((length - window) / stride)
    return [min(step * stride, length - window) for step in range(steps + 1)]


def even_starts(length: int, window: int, stride: int) -> list[int]:
    """Starts at most one stride apart, spread evenly from one end of the axis to the other."""
    steps = math.ceil((length - window) / stride)
    return [round(step * (length - window) / max(1, steps)) for step in range(steps + 1)]


def fill_deficits(
    axes: Sequence[Sequence[int]], size: Sequence[int], window: Sequence[int], samples: int
) -> np.ndarray:
    """Samples of each window (one axis of the array for each of `axes`), at least one, at least `samples` a voxel.

    Greedy: where the fewest windows lie a sample is missing first; it is drawn by the window that mends the most.
    """
    cells = [_cells(*axis) for axis in zip(axes, size, window, strict=True)]
    covers, lengths = [cover for cover, _ in cells], [length for _, length in cells]
    voxels = np.einsum("i,j,k->ijk", *lengths)
    counts = np.ones([len(starts) for starts in axes], dtype=np.int64)
    windows_over = _coverage(counts, covers)
    while (missing := np.maximum(samples - _coverage(counts, covers), 0)).any():
        cell = np.unravel_index(np.where(missing > 0, windows_over, np.inf).argmin(), missing.shape)
        mended = np.minimum(missing, missing[cell]) * voxels
        gains = np.einsum("ijk,ia,jb,kc->abc", mended, *covers, optimize=True)
        inside = np.einsum("a,b,c->abc", *[cover[i] for cover, i in zip(covers, cell, strict=True)])
        counts[np.unravel_index(np.where(inside > 0, gains, -1).argmax(), counts.shape)] += missing[cell]
    return counts


def _cells(starts: Sequence[int], length: int, window: int) -> tuple[np.ndarray, np.ndarray]:
    """The axis cut where windows begin and end: (cells, starts), 1 where one covers a cell, and the cells' lengths."""
    edges = np.unique([0, length, *starts, *(start + window for start in starts)])
    begins = edges[:-1, None]
    return ((begins >= starts) & (begins < np.asarray(starts) + window)).astype(np.int64), np.diff(edges)


def _coverage(counts: np.ndarray, covers: Sequence[np.ndarray]) -> np.ndarray:
    """Samples of every cell."""
    return np.einsum("abc,ia,jb,kc->ijk", counts, *covers, optimize=True)
