"""Weights that change with the number of steps taken."""

import math


def sigmoid_ramp(step: float, length: float) -> float:
    """exp(-5 (1 - t)^2) with t = step / length, at most 1: from 0.0067 at step 0 to 1 at `length` and after it.

    A length of 0 gives 1 at once.
    """
    left = max(0.0, 1 - step / length) if length else 0.0
    return math.exp(-5 * left**2)


def linear_ramp(step: float, length: float) -> float:
    """step / length, at most 1: from 0 at step 0 to 1 at `length` and after it; a length of 0 gives 1 at once."""
    return min(1.0, step / length) if length else 1.0


def switched_on(step: float, start: float) -> float:
    """0 before the step `start`, 1 from then on."""
    return 1.0 if step >= start else 0.0
