"""Dice and Jaccard against counting by hand, and their laws."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from medssl.core.errors import DataError
from medssl.metrics import dice, jaccard

MASK_PAIRS = array_shapes(min_dims=1, max_dims=4, max_side=4).flatmap(
    lambda shape: st.tuples(arrays(np.bool_, shape), arrays(np.bool_, shape))
)


def golden_h1():
    prediction, label = np.zeros((10, 10), bool), np.zeros((10, 10), bool)
    prediction[1:4, 1:4] = prediction[8, 8] = label[1:4, 1:6] = True
    return prediction, label


def test_golden_h1():
    assert dice(*golden_h1()) == pytest.approx(0.72)
    assert jaccard(*golden_h1()) == pytest.approx(0.5625)


def test_two_empty_masks_agree():
    empty = np.zeros((3, 3), bool)
    assert dice(empty, empty) == jaccard(empty, empty) == 1


def test_one_empty_mask_scores_zero():
    empty, full = np.zeros((3, 3), bool), np.ones((3, 3), bool)
    assert dice(empty, full) == dice(full, empty) == jaccard(empty, full) == jaccard(full, empty) == 0


@settings(deadline=None)
@given(MASK_PAIRS)
def test_equal_to_counting_voxel_by_voxel(masks):
    prediction, label = (set(np.flatnonzero(mask)) for mask in masks)
    if prediction | label:
        assert dice(*masks) == pytest.approx(2 * len(prediction & label) / (len(prediction) + len(label)))
        assert jaccard(*masks) == pytest.approx(len(prediction & label) / len(prediction | label))


@settings(deadline=None)
@given(MASK_PAIRS)
def test_symmetric_and_jaccard_follows_from_dice(masks):
    prediction, label = masks
    d = dice(prediction, label)
    assert d == dice(label, prediction)
    assert jaccard(prediction, label) == pytest.approx(d / (2 - d))
    assert dice(prediction, prediction) == 1


def test_torch_and_numpy_masks_mix():
    prediction, label = golden_h1()
    assert dice(torch.from_numpy(prediction), label.astype(np.uint8)) == dice(prediction, label)


def test_shapes_that_numpy_would_broadcast_are_refused():
    with pytest.raises(DataError, match=r"\(1, 3\).*\(3, 3\)"):
        dice(np.ones((1, 3), bool), np.ones((3, 3), bool))
