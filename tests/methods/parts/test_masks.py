"""Masks of confidence and of entropy, place by place."""

import math

import pytest
import torch

from medssl.methods.parts import confidence_mask, entropy_mask, sigmoid_ramp, ua_mt_entropy_limit


@pytest.fixture(params=[(4, 5), (4, 5, 3)])
def probs(request):
    torch.manual_seed(0)
    return (2 * torch.randn(2, 3, *request.param)).softmax(1)


def places_of(probs):
    """Every place of (B, *spatial) with the probabilities there."""
    last = probs.movedim(1, -1)
    for place in torch.cartesian_prod(*(torch.arange(side) for side in last.shape[:-1])).tolist():
        yield tuple(place), last[tuple(place)].tolist()


def test_confidence_mask_is_the_highest_probability_against_the_threshold(probs):
    found = confidence_mask(probs, 0.7)
    assert found.shape == (2, *probs.shape[2:]) and found.dtype == torch.bool
    assert all(bool(found[place]) == (max(values) >= 0.7) for place, values in places_of(probs))
    assert 0 < found.float().mean() < 1


def test_threshold_itself_is_confident_enough():
    assert confidence_mask(torch.tensor([[0.5, 0.5]]), 0.5, dim=-1).tolist() == [True]


def test_every_place_may_have_a_threshold_of_its_own(probs):
    thresholds = torch.rand(2, *probs.shape[2:])
    found = confidence_mask(probs, thresholds)
    assert all(bool(found[place]) == (max(values) >= thresholds[place]) for place, values in places_of(probs))


def test_entropy_mask_is_the_entropy_in_nats_below_the_limit(probs):
    found = entropy_mask(probs, 0.6)
    for place, values in places_of(probs):
        assert bool(found[place]) == (-sum(p * math.log(p) for p in values) < 0.6)
    assert 0 < found.float().mean() < 1


def test_limit_of_ua_mt_rises_from_three_quarters_to_the_highest_entropy():
    assert ua_mt_entropy_limit(2, 0.0) == pytest.approx(0.75 * math.log(2))
    assert ua_mt_entropy_limit(4, 1.0) == pytest.approx(math.log(4))
    limits = [ua_mt_entropy_limit(3, sigmoid_ramp(step, 10)) for step in range(11)]
    assert limits == sorted(limits) and len(set(limits)) == 11
