"""Plans of windows: MONAI's own grid, and few passes that leave no voxel with too few samples."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from monai.data.utils import dense_patch_slices

from medssl.inference.windows import grid_plan, overlap_plan

THESIS_WINDOW = (128, 128, 32)
SIDE = st.integers(1, 40)


def samples_of_voxels(plan, size, window):
    counts = np.zeros(size)
    for start, samples in plan.items():
        counts[tuple(slice(first, first + length) for first, length in zip(start, window, strict=True))] += samples
    return counts


def half(window):
    return tuple(length // 2 for length in window)


@settings(deadline=None, max_examples=40)
@given(window=st.tuples(SIDE, SIDE, SIDE), more=st.tuples(SIDE, SIDE, SIDE), stride=st.tuples(SIDE, SIDE, SIDE))
def test_grid_is_that_of_monais_sliding_windows(window, more, stride):
    size = tuple(w + m - 1 for w, m in zip(window, more, strict=True))
    stride = tuple(min(s, w) for s, w in zip(stride, window, strict=True))
    theirs = {tuple(part.start for part in where) for where in dense_patch_slices(size, window, stride)}
    plan = grid_plan(size, window, stride, 3)
    assert set(plan) == theirs and set(plan.values()) == {3}
    assert samples_of_voxels(plan, size, window).min() >= 3


@settings(deadline=None, max_examples=25)
@given(
    window=st.tuples(SIDE, SIDE, SIDE),
    factors=st.tuples(*[st.floats(1, 3.5)] * 3),
    shares=st.tuples(*[st.floats(0.2, 1.2)] * 3),
    samples=st.integers(1, 30),
)
def test_every_voxel_gets_enough_samples_from_the_windows_of_the_grid(window, factors, shares, samples):
    size = tuple(int(w * factor) for w, factor in zip(window, factors, strict=True))
    stride = tuple(max(1, int(w * share)) for w, share in zip(window, shares, strict=True))
    plan = overlap_plan(size, window, stride, samples)
    everything = grid_plan(size, window, stride, samples)
    assert list(plan) == list(everything) and min(plan.values()) >= 1
    assert samples_of_voxels(plan, size, window).min() >= samples
    assert sum(plan.values()) <= sum(everything.values())


@settings(deadline=None, max_examples=15)
@given(factors=st.tuples(*[st.floats(1, 3.5)] * 3), samples=st.integers(1, 30))
def test_no_voxels_mean_is_less_certain_than_that_of_as_many_passes_of_one_window(factors, samples):
    window = (20, 24, 8)
    size = tuple(int(w * factor) for w, factor in zip(window, factors, strict=True))
    plan = overlap_plan(size, window, (5, 6, 4), samples)
    windows = samples_of_voxels(dict.fromkeys(plan, 1), size, window)
    inverse = samples_of_voxels({start: 1 / count for start, count in plan.items()}, size, window)
    variance_of_mean = inverse / windows**2  # windows count alike; in units of a pass
    assert (variance_of_mean <= 1 / samples + 1e-9).all()


@pytest.mark.parametrize(("stride", "passes"), [((8, 8, 8), 2001), ((32, 32, 16), 415), ((64, 64, 16), 263)])
def test_thesis_scan_takes_few_of_28900_passes(stride, passes):
    size = (256, 256, 64)
    plan = overlap_plan(size, THESIS_WINDOW, stride, 20)
    assert sum(plan.values()) == passes
    assert sum(grid_plan(size, THESIS_WINDOW, (8, 8, 8), 20).values()) == 28_900
    assert samples_of_voxels(plan, size, THESIS_WINDOW).min() == 20


@pytest.mark.parametrize("size", [(256, 256, 64), (160, 160, 64), (256, 256, 32), (288, 288, 88), (330, 330, 100)])
@pytest.mark.parametrize("samples", [5, 20])
def test_passes_lie_between_the_least_possible_and_those_of_the_grid(size, samples):
    passes = sum(overlap_plan(size, THESIS_WINDOW, half(THESIS_WINDOW), samples).values())
    least = samples * math.prod(length // w for length, w in zip(size, THESIS_WINDOW, strict=True))
    assert least <= passes <= sum(grid_plan(size, THESIS_WINDOW, half(THESIS_WINDOW), samples).values())


def test_scan_of_one_window_gets_all_samples_there():
    assert overlap_plan(THESIS_WINDOW, THESIS_WINDOW, (8, 8, 8), 20) == {(0, 0, 0): 20}


def test_corner_voxel_lies_in_one_window_which_draws_all_of_its_samples():
    plan = overlap_plan((100, 90, 40), (64, 64, 16), (16, 16, 8), 7)
    assert plan[0, 0, 0] == plan[36, 26, 24] == 7


def test_stride_longer_than_the_window_leaves_no_voxel_out():
    assert list(grid_plan((20, 8, 4), (8, 8, 4), (30, 30, 30), 1)) == [(0, 0, 0), (8, 0, 0), (12, 0, 0)]
