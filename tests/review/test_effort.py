import numpy as np
import pytest

from medssl.core.errors import ConfigError
from medssl.review.effort import Effort, Work, choose, parse_budget
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


def test_effort_is_opening_plus_slices_plus_area():
    assert Effort().seconds(Work(0, 0.0)) == 30
    assert Effort(open_seconds=10, slice_seconds=4, area_seconds=3).seconds(Work(6, 2.0)) == 40


def test_only_uncertain_voxels_near_a_structure_are_work():
    segmentation, entropy = np.zeros((2, 40, 40, 10))
    segmentation[5:10, 5:10, 2:6] = 1
    entropy[7, 7, 3] = 0.6  # inside
    entropy[12, 7, 5] = 0.6  # 3 mm beside
    entropy[7, 7, 4] = 0.4  # certain enough
    entropy[35, 35, 8] = 1.0  # far away
    any_area = {"slice_mm2": 0.0}
    spacing_mm = (1.0, 1.0, 3.0)
    near = surroundings(segmentation > 0, spacing_mm)
    assert Effort(**any_area).work(near, entropy, spacing_mm, axis=2) == Work(2, 0.02)
    assert Effort(**any_area, uncertain_bits=0.3).work(near, entropy, spacing_mm, axis=2) == Work(3, 0.03)
    assert Effort(**any_area).work(near, entropy, spacing_mm, axis=0) == Work(2, 0.06)


def test_a_thin_uncertain_rim_is_less_work_than_a_doubtful_region_of_as_many_slices():
    segmentation, rim, region = np.zeros((3, 40, 40, 10))
    segmentation[10:30, 10:30] = 1
    rim[10, 10:30] = 0.9
    region[10:20, 10:30] = 0.9
    near = surroundings(segmentation > 0, (1.0, 1.0, 2.0))
    thin, broad = (Effort().work(near, found, (1.0, 1.0, 2.0), axis=2) for found in (rim, region))
    assert thin.slices == broad.slices == 10 and broad.area_cm2 == pytest.approx(10 * thin.area_cm2)
    assert Effort().seconds(broad) > 1.5 * Effort().seconds(thin)


def test_slices_with_a_little_uncertainty_need_no_look():
    segmentation, entropy = np.zeros((2, 20, 20, 4))
    segmentation[5:15, 5:15] = 1
    entropy[5, 5:15, 0] = 0.9  # 10 mm2
    entropy[5:8, 5:15, 1] = 0.9  # 30 mm2
    near = surroundings(segmentation > 0, (1.0, 1.0, 2.0))
    assert Effort().work(near, entropy, (1.0, 1.0, 2.0), axis=2) == Work(1, 0.4)


def test_where_nothing_was_found_all_voxels_count():
    entropy = np.zeros((8, 8, 5))
    entropy[1, 1, 0] = entropy[7, 7, 4] = 0.9
    assert Effort(slice_mm2=1).work(np.zeros((8, 8, 5), bool), entropy, (1.0, 1.0, 1.0), axis=2) == Work(2, 0.02)


@pytest.mark.parametrize("constants", [{"open_seconds": -1.0}, {"slice_seconds": float("nan")}])
def test_impossible_constants_are_refused(constants):
    with pytest.raises(ConfigError, match=next(iter(constants))):
        Effort(**constants)
