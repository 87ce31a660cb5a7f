"""The tables of results: order of rows, scans used, means over seeds by hand."""

import pytest
from rich.console import Console

from medssl.methods.facts import MethodFacts
from medssl.report import Comparison, compare_runs, print_comparison
from medssl.report.comparison.differences import differences
from medssl.report.comparison.thesis_tables import by_dataset, results_grid, results_lead, scans_used


def texts(grid):
    return [[f"{cell.text} {cell.small}".strip() for cell in row.cells] for row in grid.rows]


def stored(title, **facts):
    """What a run stores of its method."""
    return MethodFacts(title, **{"learns_from_unlabelled": True, **facts}).to_json()


def test_methods_stand_by_the_place_that_their_runs_store_then_by_title(run_of):
    places = {"b, last": 1000, "A": 1000, "second": 7, "first": 3, "before all": 0}
    runs = [run_of(name, {"a": 0.5}, method_facts=stored("any", place=place)) for name, place in places.items()]
    assert [row.method for row in compare_runs(runs)] == ["before all", "first", "second", "A", "b, last"]


def test_unlabelled_scans_are_counted_where_the_run_says_that_its_method_learns_from_them(run_of):
    runs = [
        run_of("supervised by name", {"a": 0.5}, unlabelled=8, method_facts=stored("mine")),
        run_of("teacher", {"a": 0.5}, unlabelled=8, method_facts=stored("mine", learns_from_unlabelled=False)),
    ]
    used = {row.method: scans_used(row) for row in compare_runs(runs)}
    assert used == {"supervised by name": "4 vs. 8", "teacher": "4 vs. 0"}


def test_runs_made_before_stand_where_the_method_of_their_title_stands(run_of):
    names = ["other", "GBDL", "supervised, twice the steps", "IC-LRL", "GBDL without Z", "another"]
    names += ["Volume-based LRL", "supervised", "self-training", "GBDL w/o L_MSE", "GBDL w/o L_KL"]
    rows = compare_runs([run_of(name, {"a": 0.5}) for name in names])
    assert [row.method for row in rows] == [
        "supervised",
        "supervised, twice the steps",
        "self-training",
        "GBDL without Z",
        "Volume-based LRL",
        "IC-LRL",
        "GBDL w/o L_MSE",
        "GBDL w/o L_KL",
        "GBDL",
        "another",
        "other",
    ]


def test_rows_have_means_by_hand_and_are_grouped_by_labels(run_of):
    runs = [
        run_of("GBDL", {"a": 0.6, "b": 0.8}, seed=0, unlabelled=8),
        run_of("GBDL", {"a": 0.7, "b": 0.9}, seed=1, unlabelled=8),
        run_of("supervised", {"a": 0.5, "b": 0.6}, seed=0, unlabelled=8),
        run_of("supervised", {"a": 0.9, "b": 0.9}, seed=0, labelled=12, unlabelled=0),
    ]
    grid = results_grid(compare_runs(runs))

    assert [column.title for column in grid.columns] == ["Method", "L vs. U", "Dice ↑", "95HD (mm) ↓", "Seeds"]
    assert texts(grid) == [
        ["supervised", "12 vs. 0", "0.900", "1.00", "1"],
        ["supervised", "4 vs. 0", "0.550", "4.50", "1"],
        ["GBDL", "4 vs. 8", "0.750 ± 0.071", "2.50 ± 0.71", "2"],
    ]
    assert [row.first for row in grid.rows] == [False, True, False]


def test_all_columns_of_the_thesis_come_first(make_run):
    from medssl.report import compare

    titles = [column.title for column in results_grid(compare([make_run(scans=False)]).rows).columns]
    assert titles[:7] == ["Method", "L vs. U", "Dice ↑", "Jaccard ↑", "95HD (mm) ↓", "ASD (mm) ↓", "ASSD (mm) ↓"]
    assert titles[-2:] == ["Missed", "Seeds"]


def test_missed_cases_are_summed_over_seeds(make_run):
    from medssl.report import compare

    rows = compare([make_run(f"s{seed}", scans=False, seed=seed) for seed in (0, 1)]).rows
    assert texts(results_grid(rows))[0][-2:] == ["2", "2"]
    assert "Missed:" in results_lead(rows)


@pytest.mark.parametrize(
    ("method", "unlabelled", "used"),
    [("GBDL", [8, 8], "4 vs. 8"), ("supervised, twice the steps", [8, 8], "4 vs. 0"), ("GBDL", [8, 9], "4 vs. 8–9")],
)
def test_scans_used_count_no_unlabelled_ones_for_supervised(run_of, method, unlabelled, used):
    runs = [run_of(method, {"a": 0.5}, seed=seed, unlabelled=number) for seed, number in enumerate(unlabelled)]
    (row,) = compare_runs(runs)
    assert scans_used(row) == used


def test_data_sets_get_a_table_each(run_of):
    runs = [run_of("GBDL", {"a": 0.5}, dataset=name) for name in ("left_atrium", "kits19")]
    assert list(by_dataset(compare_runs(runs))) == ["kits19", "left_atrium"]


@pytest.mark.parametrize("width", [80, 130])
def test_terminal_shows_names_and_numbers_uncut(run_of, width, capsys):
    cases = {"a": 0.51, "b": 0.62, "c": 0.43}
    runs = [run_of("supervised, twice the steps", cases, seed=seed) for seed in (0, 1, 2)]
    runs += [run_of("GBDL [bold]", {case: value + 0.1 for case, value in cases.items()}, seed=s) for s in (0, 1, 2)]
    comparison = Comparison(compare_runs(runs), differences(runs, ["supervised, twice the steps"]))
    print_comparison(comparison, Console(width=width))
    shown = capsys.readouterr().out

    assert "…" not in shown
    assert "GBDL [bold]" in shown
    assert "0.620 ± 0.000" in shown
    assert "+10.00 *" in shown and "[+10.00, +10.00]" in shown
    assert "4 vs. 0" in shown
    assert max(map(len, shown.splitlines())) <= width
