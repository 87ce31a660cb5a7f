"""How many epochs a budget of compute buys."""

import pytest
import torch
from methods.stages import small_network

from medssl.bundle.compute import (
    StageCost,
    ends_by_share,
    ends_within,
    passes_per_step,
    steps_of_an_epoch,
    steps_within,
)
from medssl.core.errors import ConfigError
from medssl.losses import DiceCE
from medssl.methods.pseudo_bank import PseudoBank


def test_stages_share_a_budget_by_what_their_steps_cost():
    stages = [StageCost("pretraining", 0.5, 4.0), StageCost("self-training", 0.5, 14 / 3)]
    steps = steps_within(8000, stages)
    assert steps == [1000, 857]
    used = sum(number * stage.passes_per_step for number, stage in zip(steps, stages, strict=True))
    assert used == pytest.approx(8000, rel=0.001)
    assert steps_of_an_epoch(steps) == 50 and ends_within(steps, 50) == [20, 37]


def test_a_budget_below_one_step_is_refused_with_the_least_one():
    with pytest.raises(ConfigError, match=r"patch_passes 6: too few for one step of the stage 'first'.*at least 8"):
        steps_within(6, [StageCost("first", 0.5, 4.0), StageCost("second", 0.5, 2.0)])


@pytest.mark.parametrize(
    ("epochs", "shares", "ends"),
    [(10, [1.0], [10]), (10, [0.5, 0.5], [5, 10]), (2, [0.9, 0.1], [1, 2]), (3, [0.1, 0.9], [1, 3])],
)
def test_epochs_are_divided_by_share_and_no_stage_is_empty(epochs, shares, ends):
    assert ends_by_share(epochs, shares) == ends


def test_fewer_epochs_than_stages_are_refused():
    with pytest.raises(ConfigError, match="max_epochs 1: the training has 2 stages"):
        ends_by_share(1, [0.5, 0.5])


def test_passes_of_a_step_are_counted_without_a_trace():
    torch.manual_seed(3)
    method = PseudoBank(small_network(), DiceCE())
    weights = [parameter.clone() for parameter in method.parameters()]
    state = torch.random.get_rng_state()
    assert passes_per_step(method, (16, 16, 8), 2, 2, torch.device("cpu")) == pytest.approx(4 + 2 / 3)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(torch.equal(*pair) for pair in zip(weights, method.parameters(), strict=True))
    assert all(parameter.grad is None for parameter in method.parameters())
