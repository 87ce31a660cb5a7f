"""Differences to a baseline: values by hand, groups that must not mix, tables and CSV that say what is missing."""

import csv
import math

import numpy as np
import pytest

from medssl.core.errors import ConfigError
from medssl.metrics.catalogue import DICE, ECE, HD95, SCAN_METRICS, SHARE
from medssl.report import write_differences_csv
from medssl.report.comparison.difference_tables import difference_tables, reading_help, signed
from medssl.report.comparison.differences import differences, metric_named
from medssl.report.comparison.pairing import pair_runs

CASES = [f"case_{number}" for number in range(8)]


@pytest.fixture
def two_methods(run_of):
    """self-training at 0.5; GBDL better by 0.01 for seed 0, by 0.03 for seed 1, in every case."""
    gains = {0: 0.01, 1: 0.03}
    runs = [run_of("self-training", dict.fromkeys(CASES, 0.5), seed=seed) for seed in gains]
    return runs + [run_of("GBDL", dict.fromkeys(CASES, 0.5 + gain), seed=seed) for seed, gain in gains.items()]


def test_difference_is_in_points_with_the_seeds_shown(two_methods):
    (found,) = differences(two_methods, ["self-training"])

    assert (found.method, found.baseline, found.labelled, found.cases) == ("GBDL", "self-training", 4, 8)
    assert found.mean == pytest.approx(2.0)
    assert found.per_seed == pytest.approx({0: 1.0, 1: 3.0})
    assert (found.over_seeds_and_cases.low, found.over_seeds_and_cases.high) == pytest.approx((1.0, 3.0))
    assert (found.over_cases.low, found.over_cases.high) == pytest.approx((2.0, 2.0))
    assert found.is_clear


def test_distances_are_in_mm(two_methods):
    (found,) = differences(two_methods, ["self-training"], [HD95])
    assert (found.metric.unit.difference, found.mean) == ("mm", pytest.approx(-0.2))


def test_difference_turns_its_sign_with_the_roles(two_methods):
    forth, back = (differences(two_methods, [name])[0] for name in ("self-training", "GBDL"))
    assert forth.mean == -back.mean
    assert forth.over_seeds_and_cases.low == pytest.approx(-back.over_seeds_and_cases.high)


def test_noise_is_not_marked(run_of):
    rng = np.random.default_rng(0)
    noisy = {name: [dict(zip(CASES, rng.normal(0.5, 0.1, 8), strict=True)) for _ in range(3)] for name in "ab"}
    runs = [run_of(name, dice, seed=seed) for name, of_seeds in noisy.items() for seed, dice in enumerate(of_seeds)]
    (found,) = differences(runs, ["a"])

    assert not found.is_clear
    assert found.mean == pytest.approx(100 * pair_runs(runs[3:], runs[:3], DICE).values.mean())
    assert found == differences(runs[::-1], ["a"])[0]


def test_one_seed_gives_an_interval_over_cases_only(two_methods):
    (found,) = differences(two_methods[::2], ["self-training"])
    assert math.isnan(found.over_seeds_and_cases.low)
    assert math.isfinite(found.over_cases.low)
    assert not found.is_clear


def test_labels_datasets_and_leaking_runs_are_never_mixed(run_of):
    places = [{}, {"labelled": 16}, {"dataset": "kits19"}, {"paper_crop": True}]
    runs = [run_of("self-training", dict.fromkeys(CASES, 0.5), **place) for place in places]
    runs += [run_of("GBDL", dict.fromkeys(CASES, 0.6 + 0.1 * n), **place) for n, place in enumerate(places)]
    found = {(d.dataset, d.labelled, d.paper_crop): round(d.mean) for d in differences(runs, ["self-training"])}
    assert found == {
        ("kits19", 4, False): 30,
        ("phantom", 16, False): 20,
        ("phantom", 4, False): 10,
        ("phantom", 4, True): 40,
    }


def test_several_baselines_each_get_all_other_methods_in_the_tables_order(two_methods, run_of):
    runs = [*two_methods, run_of("supervised", dict.fromkeys(CASES, 0.4)), run_of("odd", dict.fromkeys(CASES, 0.4))]
    found = [(row.baseline, row.method) for row in differences(runs, ["Self-Training", "supervised"])]
    assert found == [
        ("self-training", "supervised"),
        ("self-training", "GBDL"),
        ("self-training", "odd"),
        ("supervised", "self-training"),
        ("supervised", "GBDL"),
        ("supervised", "odd"),
    ]


def test_an_unknown_baseline_is_refused_with_those_there_are(two_methods):
    with pytest.raises(ConfigError, match=r"--against 'teacher': none of the runs .* Found: self-training; GBDL"):
        differences(two_methods, ["teacher"])


def test_metrics_go_by_their_short_names():
    found = [metric_named(name, SCAN_METRICS) for name in ("hd95", "HD95_mm", "Dice", "ece")]
    assert found == [HD95, HD95, DICE, ECE]
    with pytest.raises(ConfigError, match=r"metric 'volume': unknown\. Known: .*dice, jaccard, hd95"):
        metric_named("volume", SCAN_METRICS)


def test_what_cannot_be_paired_is_shown_without_numbers_and_explained(two_methods, run_of):
    runs = [*two_methods, run_of("GBDL", dict.fromkeys(CASES, 0.5), labelled=16)]
    (table,) = difference_tables(differences(runs, ["self-training"]))

    assert [cell.text for cell in table.grid.rows[0].cells] == ["GBDL", "16", "–", "–", "–", "–", "–", "0"]
    assert table.notes == ["GBDL, 16 labelled: not paired: the baseline has no evaluated run."]


def test_table_marks_what_excludes_zero_and_tells_how_few_seeds_there_are(two_methods):
    rows = differences(two_methods, ["self-training"])
    (table,) = difference_tables(rows)

    assert table.title == "phantom: Dice against self-training (points)"
    assert [cell.text for cell in table.grid.rows[0].cells][2:6] == [
        "+2.00 *",
        "[+1.00, +3.00]",
        "[+2.00, +2.00]",
        "+1.00, +3.00",
    ]
    assert "1 of 2 such experiments with 2 seeds" in reading_help(rows)[-1]
    assert reading_help([]) == []


@pytest.mark.parametrize(("value", "text"), [(1.236, "+1.24"), (-0.5, "−0.50"), (-0.001, "0.00"), (math.nan, "–")])
def test_signs_are_written_out(value, text):
    assert signed(value, SHARE) == text


def test_csv_holds_every_difference_unrounded(two_methods, tmp_path):
    rows = differences(two_methods, ["self-training"], [DICE, HD95])
    with write_differences_csv(rows, tmp_path / "differences.csv").open() as stream:
        dice, distance = csv.DictReader(stream)

    assert dice["difference"] == "2.000000"
    assert (dice["method"], dice["baseline"], dice["unit"], dice["excludes_zero"]) == (
        "GBDL",
        "self-training",
        "points",
        "true",
    )
    assert (dice["n_seeds"], dice["n_cases"], dice["per_seed"]) == ("2", "8", "0: 1.000000; 1: 3.000000")
    assert distance["metric"] == "hd95_mm"
