"""Distances to the nearest voxel, near and far, against all pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist

from medssl.metrics import nearest
from medssl.metrics.nearest import nearest_distances_mm

SPACING_MM = np.array([0.7, 1.3, 3.0])


def shell(radius: float, size: int = 41) -> np.ndarray:
    """Voxels about `radius` voxels from the middle of a cube."""
    away = np.sqrt(sum((x - size // 2) ** 2 for x in np.ogrid[:size, :size, :size]))
    return np.argwhere(np.abs(away - radius) < 0.6)


SETS = {
    "inside to outside": (shell(4), shell(19)),
    "outside to inside": (shell(19), shell(4)),
    "the middle of a ball": (np.array([[20, 20, 20]]), shell(18)),
    "far away": (shell(5) + 200, shell(9)),
    "near and far": (np.concatenate([shell(9), shell(5) + 60]), shell(10)),
    "one voxel": (shell(7), np.array([[3, 100, 5]])),
}


@pytest.mark.parametrize("pairs_at_once", [1, 2**6, 2**16])
@pytest.mark.parametrize("sets", SETS.values(), ids=SETS)
def test_equal_to_the_least_of_all_pairs(sets, pairs_at_once, monkeypatch):
    monkeypatch.setattr(nearest, "FEW_PAIRS", pairs_at_once)
    voxels, others = sets
    expected = cdist(voxels * SPACING_MM, others * SPACING_MM).min(axis=1)
    np.testing.assert_allclose(nearest_distances_mm(voxels, others, SPACING_MM), expected, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 3).flatmap(lambda axes: st.tuples(*[arrays(int, (20, axes), elements=st.integers(0, 99))] * 2)))
def test_equal_for_any_scattered_voxels(sets):
    voxels, others = sets
    spacing = SPACING_MM[: voxels.shape[1]]
    expected = cdist(voxels * spacing, others * spacing).min(axis=1)
    np.testing.assert_allclose(nearest_distances_mm(voxels, others, spacing), expected, atol=1e-9)
