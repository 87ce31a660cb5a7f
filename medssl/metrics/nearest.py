"""The distance of each voxel of one set to the nearest voxel of another, whatever the sets look like.

A tree is fast where the sets lie close together. From far away nearly all of a surface is equally near, and a tree
looks at most of it: there, blocks of voxels share a short list of the voxels that can be nearest to any of them.
"""

import numpy as np
from scipy import ndimage
from scipy.spatial import KDTree

from medssl.metrics.inputs import Array

CELL_VOXELS = 4
FEW_PAIRS = 2**16  # a table of them stays in the cache
ROUNDING_MM2 = 1e-6  # far above the error of a squared distance, far below any that counts


def nearest_distances_mm(voxels: Array, others: Array, spacing: Array) -> Array:
    """Distance of each of `voxels` (N, D) to the nearest of `others` (M, D); whole numbers, M at least 1; (N,)."""
    found = np.empty(len(voxels))
    near = _have_neighbours(voxels, others)
    points, targets = voxels * spacing, others * spacing
    if near.any():
        found[near], _ = KDTree(targets, compact_nodes=False, balanced_tree=False).query(points[near])
    if not near.all():
        found[~near] = _distances_by_blocks(points[~near].T, targets.T)
    return found


def _have_neighbours(voxels: Array, others: Array) -> Array:
    """Whether one of `others` lies in the same cell of the grid as each of `voxels`, or in one beside it."""
    cells, occupied = voxels // CELL_VOXELS, others // CELL_VOXELS
    grid = np.zeros(np.maximum(cells.max(0, initial=0), occupied.max(0)) + 1, dtype=bool)
    grid[tuple(occupied.T)] = True
    around = ndimage.binary_dilation(grid, np.ones((3,) * grid.ndim, dtype=bool))
    return around[tuple(cells.T)]


def _distances_by_blocks(points: Array, targets: Array) -> Array:
    """Distance of each of `points` (D, N) to the nearest of `targets` (D, M), in blocks that are halved until small."""
    found = np.empty(points.shape[1])
    blocks = [(np.arange(points.shape[1]), points, targets)]
    while blocks:
        places, inside, candidates = blocks.pop()
        low, high = inside.min(axis=1), inside.max(axis=1)
        candidates = _possibly_nearest(candidates, (low + high) / 2, (high - low) / 2)
        if inside.shape[1] == 1 or inside.shape[1] * candidates.shape[1] <= FEW_PAIRS:
            found[places] = _distances_of_all_pairs(inside, candidates)
            continue
        axis = int((high - low).argmax())
        lower = inside[axis] <= (low[axis] + high[axis]) / 2
        blocks += [(places[half], inside[:, half], candidates) for half in map(np.flatnonzero, (lower, ~lower))]
    return found


def _possibly_nearest(candidates: Array, centre: Array, half: Array) -> Array:
    """Those of `candidates` (D, M) that are nearest to some point of the box `centre` +- `half`, or might be.

    Let t0 be the one nearest to the centre c. Somewhere in the box t is nearer than t0 only if
    |c - t|^2 - |c - t0|^2 < 2 sum_i half_i |t - t0|_i: the left side is linear in c.
    """
    offsets = candidates - centre[:, None]
    squared = np.einsum("ij,ij->j", offsets, offsets)
    best = int(squared.argmin())
    reach = 2 * half @ np.abs(candidates - candidates[:, best, None])
    return candidates[:, np.flatnonzero(squared - squared[best] <= reach + ROUNDING_MM2)]


def _distances_of_all_pairs(points: Array, targets: Array) -> Array:
    """Distance of each of `points` (D, N) to the nearest of `targets` (D, M) by looking at all of them."""
    # |t|^2 - 2 p.t, which orders the targets of a point p by their distance
    order = np.einsum("ij,ij->j", targets, targets) - 2 * points.T @ targets
    offsets = points - targets[:, order.argmin(axis=1)]
    return np.sqrt(np.einsum("ij,ij->j", offsets, offsets))
