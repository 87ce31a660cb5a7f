"""Ramps: where they begin and end, and their formula in between."""

import math

import pytest

from medssl.methods.parts import linear_ramp, sigmoid_ramp, switched_on


def test_sigmoid_ramp_follows_its_formula_and_stays_full():
    for step in range(41):
        share = min(step, 40) / 40
        assert sigmoid_ramp(step, 40) == pytest.approx(math.exp(-5 * (1 - share) ** 2), rel=1e-12)
    assert sigmoid_ramp(0, 40) == pytest.approx(0.006738, abs=1e-6)
    assert sigmoid_ramp(40, 40) == sigmoid_ramp(1000, 40) == 1.0


def test_linear_ramp_rises_evenly_and_stays_full():
    assert [linear_ramp(step, 4) for step in range(7)] == [0.0, 0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


@pytest.mark.parametrize("ramp", [sigmoid_ramp, linear_ramp, switched_on])
def test_without_a_length_the_weight_is_full_at_once(ramp):
    assert ramp(0, 0) == 1.0


def test_switch_turns_on_at_its_step():
    assert [switched_on(step, 2) for step in range(4)] == [0.0, 0.0, 1.0, 1.0]
