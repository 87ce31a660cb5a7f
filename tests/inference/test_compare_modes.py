"""Modes are compared case by case with reference, and the table says how far they are apart."""

import csv
import shutil

import numpy as np
import pytest

from medssl.core.errors import ConfigError
from medssl.inference.compare_modes import AGAIN, KIND, Side, write_mode_comparison
from medssl.inference.comparison import correlation, mean_scores, summary_table

CHANCE = "reference" + AGAIN


@pytest.fixture(scope="module")
def comparison(trained_run, tmp_path_factory):
    run = shutil.copytree(trained_run, tmp_path_factory.mktemp("modes") / "run")
    return write_mode_comparison(run, samples=2, stride=(32, 32, 16), limit=2, again=1)


def test_each_case_has_a_row_for_each_mode(comparison):
    path, rows = comparison
    stored = list(csv.DictReader(path.open()))
    assert [row["mode"] for row in stored] == ["reference", "fast", CHANCE, "fast" + AGAIN, "reference", "fast"]
    assert [row["case"] for row in stored] == [row["case"] for row in rows] and len({r["case"] for r in rows}) == 2


def test_reference_agrees_with_itself_and_not_quite_with_another_seed(comparison):
    rows = {row["mode"]: row for row in comparison[1][:3]}
    assert rows["reference"]["dice_difference"] == 0 and rows["reference"]["entropy_correlation"] == 1
    assert rows[CHANCE]["entropy_correlation"] < 0.9999  # other samples


def test_sides_may_have_strides_of_their_own(trained_run, tmp_path):
    run = shutil.copytree(trained_run, tmp_path / "run")
    sides = [Side.parse("fast@32,32,4"), Side.parse("fast@32,32,16"), Side.parse("fast")]
    _, rows = write_mode_comparison(run, sides, samples=2, stride=(32, 32, 16), limit=1, again=0)
    dense, sparse, default = rows
    assert [row["mode"] for row in rows] == ["fast @ 32x32x4", "fast @ 32x32x16", "fast"]
    assert dense["entropy_correlation"] == 1 and sparse["entropy_correlation"] < 1
    assert {**sparse, "mode": "", "seconds": 0} == {**default, "mode": "", "seconds": 0}  # --stride is that of the rest


@pytest.mark.parametrize("text", ["quick", "fast@8", "fast@8,8,x", "fast@0,8,8", "@8,8,8", ""])
def test_side_that_is_none_is_refused_with_an_example(text):
    with pytest.raises(ConfigError, match="fast@8,8,8"):
        Side.parse(text)


def test_summary_has_means_and_the_largest_difference_of_a_case():
    score = {"dice": 0.8, "pavpu": 0.5, "pavpu_difference": 0.0, "entropy_correlation": 0.9, "seconds": 1.0}
    rows = [
        {"case": "a", "mode": "fast", **score, "dice_difference": 0.01},
        {"case": "b", "mode": "fast", **score, "dice_difference": -0.03, "entropy_correlation": 0.7},
    ]
    [cells] = zip(*[column.cells for column in summary_table(KIND, rows).columns], strict=True)
    assert cells == ("fast", "2", "0.8000", "-0.0100 (0.0300)", "0.5000", "+0.0000 (0.0000)", "0.8000 (0.7000)", "1.0")
    assert mean_scores(KIND, rows, "fast")["dice_difference"] == pytest.approx(-0.01)


def test_correlation_is_one_of_equal_maps_and_minus_one_of_opposite_ones():
    values = np.arange(24.0).reshape(2, 3, 4)
    assert correlation(np.zeros(5), np.zeros(5)) == 1
    assert correlation(values, 3 - 2 * values) == pytest.approx(-1)


def test_run_without_test_cases_is_refused(trained_run):
    with pytest.raises(ConfigError, match="no test cases"):
        write_mode_comparison(trained_run, limit=0)
