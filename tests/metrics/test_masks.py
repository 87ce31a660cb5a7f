"""evaluate_masks: its keys, its inputs and its refusals."""

import numpy as np
import pytest
import torch
from monai.data import MetaTensor

from medssl.core.errors import DataError
from medssl.metrics import evaluate_masks

SPACING_MM = (1.0, 1.0, 2.0)


@pytest.fixture
def pair():
    rng = np.random.default_rng(0)
    return rng.random((6, 5, 4)) < 0.3, rng.random((6, 5, 4)) < 0.3


def test_golden_h1_under_exactly_the_five_keys():
    prediction, label = np.zeros((10, 10), bool), np.zeros((10, 10), bool)
    prediction[1:4, 1:4] = prediction[8, 8] = label[1:4, 1:6] = True
    assert evaluate_masks(prediction, label, (1, 1)) == pytest.approx(
        {"dice": 0.72, "jaccard": 0.5625, "hd95": 2.0, "asd": 0.75899465, "assd": 0.7062358}
    )


def test_values_are_plain_floats(pair):
    assert {type(value) for value in evaluate_masks(*pair, SPACING_MM).values()} == {float}


@pytest.mark.parametrize(
    "convert",
    [
        lambda mask: mask.astype(np.uint8),
        lambda mask: mask.astype(np.int64),
        lambda mask: mask.astype(np.float32),
        lambda mask: np.asfortranarray(mask[::-1])[::-1],
        torch.from_numpy,
        lambda mask: torch.from_numpy(mask).to(torch.uint8),
        lambda mask: torch.from_numpy(mask).to(torch.bfloat16).requires_grad_(),
        lambda mask: MetaTensor(torch.from_numpy(mask).float()),
    ],
)
def test_any_array_of_zeros_and_ones_gives_the_same(pair, convert):
    assert evaluate_masks(*map(convert, pair), SPACING_MM) == evaluate_masks(*pair, SPACING_MM)


def test_spacing_may_be_an_array_or_a_tensor(pair):
    expected = evaluate_masks(*pair, SPACING_MM)
    assert evaluate_masks(*pair, np.array(SPACING_MM)) == evaluate_masks(*pair, torch.tensor(SPACING_MM)) == expected


def test_both_empty_is_a_perfect_score():
    empty = np.zeros((2, 3, 4), bool)
    assert list(evaluate_masks(empty, empty, SPACING_MM).values()) == [1, 1, 0, 0, 0]


def test_one_empty_is_a_total_miss():
    empty, full = np.zeros((3, 4), bool), np.ones((3, 4), bool)
    assert list(evaluate_masks(empty, full, (1, 1)).values()) == [0, 0, 5, 5, 5]
    assert list(evaluate_masks(full, empty, (1, 1)).values()) == [0, 0, 5, 5, 5]


def test_masks_are_left_unchanged(pair):
    copies = [mask.copy() for mask in pair]
    evaluate_masks(*pair, SPACING_MM)
    assert all(np.array_equal(mask, copy) for mask, copy in zip(pair, copies, strict=True))


def test_shape_mismatch_names_both_shapes(pair):
    with pytest.raises(DataError, match=r"\(6, 5, 4\).*\(5, 5, 4\)"):
        evaluate_masks(pair[0], pair[1][1:], SPACING_MM)


@pytest.mark.parametrize("bad", [2, -1, 0.5, np.nan])
@pytest.mark.parametrize("name", ["prediction", "label"])
def test_values_other_than_zero_and_one_are_refused(pair, bad, name):
    masks = {key: mask.astype(np.float64) for key, mask in zip(("prediction", "label"), pair, strict=True)}
    masks[name][0, 0, 0] = bad
    with pytest.raises(DataError, match=f"{name}: values"):
        evaluate_masks(**masks, spacing_mm=SPACING_MM)


@pytest.mark.parametrize(
    "spacing_mm", [(1, 1), (1, 1, 1, 1), 1.0, (1, 1, 0), (1, 1, -1), (1, 1, np.nan), (1, 1, np.inf)]
)
def test_spacing_that_does_not_fit_is_refused_even_for_empty_masks(pair, spacing_mm):
    with pytest.raises(DataError, match="spacing"):
        evaluate_masks(*pair, spacing_mm)
    with pytest.raises(DataError, match="spacing"):
        evaluate_masks(np.zeros_like(pair[0]), np.zeros_like(pair[0]), spacing_mm)
