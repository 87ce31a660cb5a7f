"""The crossed bootstrap against a loop, against all resamples there are, and against known normal values."""

import itertools
import math

import numpy as np
import pytest

from medssl.report.comparison.bootstrap import (
    UNKNOWN,
    Interval,
    case_interval,
    crossed_interval,
    few_seeds_text,
    resampled_means,
)


def normal_values(rng, seeds, cases, seed_sd=1.0, case_sd=1.0, rest_sd=0.5, mean=0.0):
    """Seeds and cases that each have an effect of their own, and a rest."""
    effects = rng.normal(0, seed_sd, (seeds, 1)) + rng.normal(0, case_sd, (1, cases))
    return mean + effects + rng.normal(0, rest_sd, (seeds, cases))


def loop_means(values, patients, resamples, seed):
    """The same bootstrap, one draw after the other."""
    rng = np.random.default_rng(seed)
    names = sorted(set(patients))
    columns = {name: [i for i, patient in enumerate(patients) if patient == name] for name in names}
    means = []
    for _ in range(resamples):
        drawn_seeds = [rng.integers(len(values)) for _ in values]
        drawn_cases = [case for _ in names for case in columns[names[rng.integers(len(names))]]]
        means.append(np.mean([values[s, c] for s in drawn_seeds for c in drawn_cases]))
    return np.array(means)


@pytest.mark.parametrize("patients", [list("abcdefghij"), list("aabbbcdefg")])
def test_vectorised_bootstrap_agrees_with_a_loop(patients):
    values = normal_values(np.random.default_rng(3), seeds=4, cases=10)
    ours = resampled_means(values, patients)
    loop = loop_means(values, patients, resamples=4000, seed=11)
    for percent in (2.5, 25, 50, 75, 97.5):
        assert np.percentile(ours, percent) == pytest.approx(np.percentile(loop, percent), abs=0.08)
    assert ours.std() == pytest.approx(loop.std(), rel=0.05)


@pytest.mark.parametrize("patients", [["x", "y", "z"], ["x", "x", "y"]])
def test_bootstrap_draws_from_all_resamples_with_equal_chance(patients):
    values = np.array([[0.0, 1.0, 5.0], [2.0, -1.0, 9.0]])
    names = sorted(set(patients))
    every = []
    for seeds in itertools.product(range(2), repeat=2):
        for drawn in itertools.product(names, repeat=len(names)):
            cases = [i for name in drawn for i, patient in enumerate(patients) if patient == name]
            every.append(values[np.ix_(seeds, cases)].mean())
    found = np.sort(resampled_means(values, patients, resamples=40_000))
    for mean in np.unique(np.round(every, 9)):
        expected = np.isclose(every, mean).mean()
        assert np.isclose(found, mean).mean() == pytest.approx(expected, abs=0.01)
    assert np.isclose(found[:, None], np.unique(every)[None]).any(axis=1).all()


def test_spread_is_that_of_the_formula_where_effects_only_add():
    rng = np.random.default_rng(5)
    seed_effects, case_effects = rng.normal(0, 1, 5), rng.normal(0, 2, 30)
    means = resampled_means(seed_effects[:, None] + case_effects[None], range(30))
    variance = seed_effects.var() / 5 + case_effects.var() / 30
    assert means.var() == pytest.approx(variance, rel=0.04)


def coverage(interval, seeds, cases, repeats=400, **sds):
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(repeats):
        found = interval(normal_values(rng, seeds, cases, mean=1.0, **sds), range(cases))
        hits += found.low <= 1.0 <= found.high
    return hits / repeats


def test_coverage_is_about_right_with_enough_seeds():
    assert 0.90 <= coverage(crossed_interval, seeds=12, cases=30) <= 0.98


def test_three_seeds_cover_three_of_four_where_seeds_are_what_varies():
    assert coverage(crossed_interval, seeds=3, cases=30, case_sd=0.01, rest_sd=0.01) == pytest.approx(0.75, abs=0.06)


def test_three_seeds_are_enough_where_cases_are_what_varies():
    assert 0.90 <= coverage(crossed_interval, seeds=3, cases=30, seed_sd=0.01) <= 0.98


def test_noise_that_belongs_to_neither_makes_the_interval_wide_not_narrow():
    assert coverage(crossed_interval, seeds=3, cases=30, seed_sd=0.0, case_sd=0.0) > 0.97


def test_interval_over_cases_is_blind_to_seeds():
    assert coverage(case_interval, seeds=3, cases=30, case_sd=0.1, rest_sd=0.1) < 0.3


def test_interval_over_cases_is_the_normal_one_for_many_cases():
    values = np.random.default_rng(8).normal(2.0, 3.0, (1, 400))
    found = case_interval(values, range(400))
    half = 1.96 * values.std() / math.sqrt(400)
    assert (found.low, found.high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.03)


def test_cases_of_one_patient_are_drawn_together():
    values = np.repeat(np.random.default_rng(2).normal(size=(1, 20)), 4, axis=1)
    alone = case_interval(values, range(80))
    together = case_interval(values, np.repeat(np.arange(20), 4))
    assert (together.high - together.low) == pytest.approx(2 * (alone.high - alone.low), rel=0.1)


def test_same_values_give_the_same_interval():
    values = normal_values(np.random.default_rng(1), 3, 12)
    assert crossed_interval(values, range(12)) == crossed_interval(values.copy(), list(range(12)))


def test_one_seed_or_one_patient_has_no_interval():
    values = np.ones((1, 5))
    assert crossed_interval(values, range(5)) is UNKNOWN
    assert case_interval(values, ["same"] * 5) is UNKNOWN
    assert not UNKNOWN.excludes_zero


@pytest.mark.parametrize(
    ("low", "high", "excludes"), [(0.1, 0.2, True), (-2, -1, True), (-1, 1, False), (0, 1, False), (0, 0, False)]
)
def test_zero_at_an_end_is_not_excluded(low, high, excludes):
    assert Interval(low, high).excludes_zero is excludes


def test_few_seeds_are_spoken_of_and_enough_are_not():
    assert few_seeds_text([6, 10]) == few_seeds_text([]) == ""
    assert "1 of 4 such experiments with 3 seeds" in few_seeds_text([3, 3, 8])
    assert few_seeds_text([1]).startswith("One seed tells nothing about other seeds")
