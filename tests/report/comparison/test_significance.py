"""Tests by the bootstrap and Holm's correction, against formulas and simulations."""

import numpy as np
import pytest

from medssl.report.comparison.significance import holm, median_of_cases, two_sided_p


def test_holm_is_that_of_the_textbook():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


def test_corrected_values_keep_their_order_and_stay_below_one():
    rng = np.random.default_rng(0)
    values = rng.random(20) ** 2
    corrected = np.array(holm(values.tolist()))
    assert (corrected >= values).all() and corrected.max() <= 1
    assert (np.diff(corrected[np.argsort(values)]) >= 0).all()


def test_a_clear_difference_has_a_small_p_and_no_difference_a_large_one():
    rng = np.random.default_rng(1)
    noise = rng.normal(0, 1, (3, 40))
    patients = np.arange(40)
    interval, p = two_sided_p(noise + 2, patients)
    assert interval.low > 0 and p < 0.01
    _, none = two_sided_p(noise - noise.mean(), patients)
    assert none > 0.5


def test_p_is_uniform_where_there_is_no_difference():
    rng = np.random.default_rng(2)
    below = [two_sided_p(rng.normal(0, 1, (1, 60)), np.arange(60))[1] < 0.1 for _ in range(100)]
    assert 0.03 <= np.mean(below) <= 0.2


def test_one_patient_tells_nothing():
    interval, p = two_sided_p(np.ones((2, 3)), ["a", "a", "a"])
    assert np.isnan(interval.low) and np.isnan(p)


def test_median_is_over_cases_of_the_mean_over_seeds():
    assert median_of_cases(np.array([[1.0, 2.0, 30.0], [3.0, 2.0, 10.0]])) == 2.0
