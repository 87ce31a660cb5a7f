import numpy as np
import pytest

from medssl.errors import ConfigError
from medssl.review.effort import Effort, choose, parse_budget
from medssl.uncertainty import surroundings


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30min", 1800),
        ("30m", 1800),
        ("1h30", 5400),
        ("1h30min", 5400),
        ("1h 30 min", 5400),
        ("1.5h", 5400),
        ("90s", 90),
        ("1min30s", 90),
        ("1h1m1s", 3661),
        (" 2H ", 7200),
        ("0.5h30min", 3600),
    ],
)
def test_times_are_read_in_seconds(text, seconds):
    assert parse_budget(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "30", "min", "half an hour", "-30min", "30min1h", "1h30s5", "0min", "1h30x", "1h90.5", "nanh", "1e3s"]
)
def test_anything_else_is_refused_with_examples(text):
    with pytest.raises(ConfigError, match=r"expected a time above 0 with its unit, e.g. 30min"):
        parse_budget(text)


def test_a_case_too_long_for_what_is_left_is_passed_over_and_the_next_that_fits_is_taken():
    choices = choose([60, 100, 30, 20], 120)
    assert [choice.chosen for choice in choices] == [True, False, True, True]
    assert [choice.left_seconds for choice in choices] == [120, 60, 60, 30]


def test_a_budget_that_fits_exactly_takes_all():
    assert all(choice.chosen for choice in choose([60, 60], 120))


def test_chosen_cases_never_need_more_than_the_budget():
    rng = np.random.default_rng(0)
    for _ in range(50):
        seconds, budget = rng.uniform(10, 300, 30), rng.uniform(0, 1000)
        taken = [s for s, choice in zip(seconds, choose(list(seconds), budget), strict=True) if choice.chosen]
        assert sum(taken) <= budget + 1e-9


def test_effort_is_opening_plus_the_slices_that_need_looking_at():
    assert Effort().seconds(0) == 30
    assert Effort(open_seconds=10, slice_seconds=4).seconds(6) == 34


def test_only_slices_with_uncertain_voxels_near_a_structure_need_looking_at():
    segmentation, entropy = np.zeros((2, 40, 40, 10))
    segmentation[5:10, 5:10, 2:6] = 1
    entropy[7, 7, 3] = 0.6  # inside
    entropy[12, 7, 5] = 0.6  # 3 mm beside
    entropy[7, 7, 4] = 0.4  # certain enough
    entropy[35, 35, 8] = 1.0  # far away
    near = surroundings(segmentation > 0, (1.0, 1.0, 3.0))
    assert Effort().slices_to_check(near, entropy, axis=2) == 2
    assert Effort(uncertain_bits=0.3).slices_to_check(near, entropy, axis=2) == 3
    assert Effort().slices_to_check(near, entropy, axis=0) == 2


def test_where_nothing_was_found_all_voxels_count():
    entropy = np.zeros((8, 8, 5))
    entropy[1, 1, 0] = entropy[7, 7, 4] = 0.9
    assert Effort().slices_to_check(np.zeros((8, 8, 5), bool), entropy, axis=2) == 2


@pytest.mark.parametrize("constants", [{"open_seconds": -1.0}, {"slice_seconds": float("nan")}])
def test_impossible_constants_are_refused(constants):
    with pytest.raises(ConfigError, match=next(iter(constants))):
        Effort(**constants)
