"""The numbers of the tables against numpy, and what counts as missed."""

import io
import math

import numpy as np
import pytest
from rich.console import Console

from medssl.core.errors import DataError
from medssl.report import compare_runs, load_run, summarise, summary_table
from medssl.report.tables import Stat, worst_first


def row(case, structure="a", dice=0.5, empty="", hd95_mm=1.0, **more):
    return {"case": case, "structure": structure, "dice": dice, "empty": empty, "hd95_mm": hd95_mm, **more}


def test_mean_and_sample_sd_are_those_of_numpy():
    dice = np.random.default_rng(0).uniform(size=7)
    (summary,) = summarise([row(f"case_{i}", dice=value) for i, value in enumerate(dice)])

    assert summary.stats["dice"].mean == pytest.approx(dice.mean())
    assert summary.stats["dice"].sd == pytest.approx(dice.std(ddof=1))
    assert summary.stats["dice"].n == summary.cases == 7


def test_one_value_has_no_sd():
    assert math.isnan(Stat.of([0.5]).sd)
    assert Stat.of([math.nan, math.inf]).n == 0


def test_missed_cases_count_in_dice_but_not_in_distances():
    missed = row("y", dice=0.0, empty="prediction", hd95_mm=math.nan)
    (summary,) = summarise([row("x", dice=0.8), missed, row("z", empty="label"), row("w", empty="both")])

    assert (summary.missed, summary.empty_labels) == (1, 2)
    assert summary.stats["dice"].n == 4
    assert summary.stats["hd95_mm"].n == 3


def test_several_structures_get_a_mean_row_over_cases():
    rows = [row("x", "a", 0.8, pavpu=0.9), row("x", "b", 0.6, pavpu=0.9), row("y", "a", 0.4), row("y", "b", 0.2)]
    *structures, mean = summarise(rows)

    assert [summary.structure for summary in structures] == ["a", "b"]
    assert mean.structure == "mean"
    assert mean.stats["dice"].mean == pytest.approx(0.5)
    assert mean.stats["dice"].sd == pytest.approx(np.std([0.7, 0.3], ddof=1))
    assert mean.stats["pavpu"].n == 1


def test_a_missed_structure_takes_the_distance_from_the_mean_row():
    missed = row("x", "b", 0.0, empty="prediction", hd95_mm=math.nan)
    mean = summarise([row("x", "a", hd95_mm=2.0), missed, row("y", "a", hd95_mm=4.0), row("y", "b", hd95_mm=6.0)])[-1]

    assert (mean.missed, mean.cases) == (1, 2)
    assert (mean.stats["hd95_mm"].n, mean.stats["hd95_mm"].mean) == (1, 5.0)


def test_nothing_evaluated_gives_no_rows():
    assert summarise([]) == []


def test_worst_case_comes_first_and_one_without_dice_last():
    assert worst_first([row("x", dice=0.9), row("y", dice=math.nan), row("z", dice=0.1)]) == ["z", "x", "y"]


def test_terminal_table_shows_missed_cases_and_the_smaller_n(finished_run):
    console = Console(file=io.StringIO(), width=80)
    console.print(summary_table(load_run(finished_run)))
    text = console.file.getvalue()

    assert "0.600 ± 0.408" in text
    assert "(n=3)" in text
    assert "missed" in text


def test_comparison_averages_run_means_over_seeds(make_run):
    values = {0: 0.8, 1: 0.7, 2: 0.9}
    runs = [
        load_run(make_run(f"s{seed}", rows=[row("x", dice=dice)], scans=False, seed=seed))
        for seed, dice in values.items()
    ]
    (group,) = compare_runs(runs)

    assert (group.method, group.dataset, group.labelled, group.n_seeds) == ("gbdl", "phantom", 4, 3)
    assert group.stats["dice"].mean == pytest.approx(0.8)
    assert group.stats["dice"].sd == pytest.approx(0.1)
    assert [seed.means["dice"] for seed in group.seeds] == [0.8, 0.7, 0.9]


def test_comparison_keeps_leaking_and_leak_free_runs_apart(make_run):
    runs = [load_run(make_run(name, scans=False, paper_crop=name == "leaking")) for name in ("clean", "leaking")]
    assert [group.paper_crop for group in compare_runs(runs)] == [False, True]


def test_comparison_lists_but_does_not_count_runs_without_evaluation(make_run):
    runs = [load_run(make_run("done", scans=False)), load_run(make_run("new", rows=None, scans=False, seed=1))]
    (group,) = compare_runs(runs)

    assert (group.n_seeds, len(group.seeds)) == (1, 2)
    assert math.isnan(group.stats["dice"].sd)


def test_comparison_refuses_a_seed_that_comes_twice(make_run):
    runs = [load_run(make_run(name, scans=False)) for name in ("first", "again")]
    with pytest.raises(DataError, match=r"first and .*again: same method.*seed 0"):
        compare_runs(runs)
