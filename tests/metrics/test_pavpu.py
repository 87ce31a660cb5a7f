"""PAvPU against a loop over windows and the golden value P1."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from medssl.core.errors import ConfigError, DataError
from medssl.metrics import pavpu
from medssl.metrics.pavpu import PatchCounts, patch_counts


def golden_p1():
    correct, uncertainty = np.zeros((8, 8), bool), np.full((8, 8), 0.1)
    correct[:4] = True
    correct[4:, 4:6] = True  # accuracy exactly 0.5 in the last window
    uncertainty[:4, 4:] = 0.6
    uncertainty[4:, :4] = 0.9
    return correct, uncertainty


def counts_by_loop(correct, uncertainty, window, accuracy_threshold, uncertainty_threshold):
    counts = dict.fromkeys(itertools.product((True, False), repeat=2), 0)
    for corner in itertools.product(*(range(0, n, edge) for n, edge in zip(correct.shape, window, strict=True))):
        patch = tuple(slice(start, start + edge) for start, edge in zip(corner, window, strict=True))
        accurate = correct[patch].mean() > accuracy_threshold
        certain = uncertainty[patch].mean() < uncertainty_threshold
        counts[bool(accurate), bool(certain)] += 1
    return PatchCounts(*counts.values())


def test_golden_p1():
    assert pavpu(*golden_p1(), window=4) == 0.5
    assert patch_counts(*golden_p1(), window=4) == PatchCounts(1, 1, 1, 1)


def test_window_at_the_accuracy_threshold_is_inaccurate():
    correct, uncertainty = golden_p1()
    counts = patch_counts(correct[4:, 4:], uncertainty[4:, 4:], window=4)
    assert counts == PatchCounts(0, 0, inaccurate_certain=1, inaccurate_uncertain=0)


def test_window_at_the_uncertainty_threshold_is_uncertain():
    assert patch_counts(np.ones((2, 2)), np.full((2, 2), 0.5), 2, uncertainty_threshold=0.5).accurate_uncertain == 1


@settings(deadline=None)
@given(
    shape=st.lists(st.integers(1, 9), min_size=2, max_size=3),
    edges=st.lists(st.integers(1, 10), min_size=3, max_size=3),
    seed=st.integers(0, 1000),
)
def test_equal_to_a_loop_over_windows_with_cut_off_ones(shape, edges, seed):
    rng = np.random.default_rng(seed)
    correct, uncertainty, window = rng.random(shape) < 0.6, rng.random(shape), edges[: len(shape)]
    counts = patch_counts(correct, uncertainty, window, 0.6, 0.5)
    assert counts == counts_by_loop(correct, uncertainty, window, 0.6, 0.5)
    assert pavpu(correct, uncertainty, window, 0.6, 0.5) == counts.pavpu


def test_one_edge_length_serves_all_axes():
    rng = np.random.default_rng(0)
    correct, uncertainty = rng.random((7, 6, 5)) < 0.5, rng.random((7, 6, 5))
    assert patch_counts(correct, uncertainty, 3) == patch_counts(correct, uncertainty, (3, 3, 3))


def test_the_three_numbers_of_mukhoti_and_gal():
    counts = PatchCounts(accurate_certain=6, accurate_uncertain=1, inaccurate_certain=2, inaccurate_uncertain=3)
    assert counts.accurate_given_certain == pytest.approx(6 / 8)
    assert counts.uncertain_given_inaccurate == pytest.approx(3 / 5)
    assert counts.pavpu == pytest.approx(9 / 12)


def test_conditional_shares_are_nan_without_their_condition():
    assert math.isnan(PatchCounts(0, 4, 0, 0).accurate_given_certain)
    assert math.isnan(PatchCounts(4, 0, 0, 0).uncertain_given_inaccurate)


def test_torch_tensors_give_the_same():
    correct, uncertainty = golden_p1()
    assert pavpu(torch.from_numpy(correct), torch.from_numpy(uncertainty).half(), window=4) == 0.5


@pytest.mark.parametrize("window", [0, -2, (4,), (4, 4, 4), (4, 1.5)])
def test_impossible_window_is_refused(window):
    with pytest.raises(ConfigError, match="window"):
        pavpu(*golden_p1(), window=window)


def test_arrays_that_do_not_fit_are_refused():
    correct, uncertainty = golden_p1()
    with pytest.raises(DataError, match=r"\(8, 8\).*\(7, 8\)"):
        pavpu(correct, uncertainty[1:], 4)
    with pytest.raises(DataError, match="correct: values"):
        pavpu(correct * 2, uncertainty, 4)
    with pytest.raises(DataError, match="NaN"):
        pavpu(correct, np.full_like(uncertainty, np.nan), 4)
    with pytest.raises(DataError, match="shape"):
        pavpu(correct[0], uncertainty[0], 4)


def test_voxels_without_a_label_do_not_count():
    correct = np.zeros((4, 8), dtype=bool)
    correct[:, :2] = True
    uncertainty = np.where(correct, 0.1, 0.9)
    counted = np.zeros((4, 8), dtype=bool)
    counted[:, :3] = True  # of the first window the larger part is right and certain; of the second nothing counts
    found = patch_counts(correct, uncertainty, 4, counted=counted)
    assert found == (1, 0, 0, 0) and patch_counts(correct, uncertainty, 4) == (0, 0, 0, 2)
    assert np.isnan(pavpu(correct, uncertainty, 4, counted=np.zeros_like(counted)))
    assert pavpu(correct, uncertainty, 4, counted=np.ones_like(counted)) == pavpu(correct, uncertainty, 4)
