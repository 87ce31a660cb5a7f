"""Dice against a coefficient: only runs that differ in nothing else share a curve, and tables tell them apart."""

import math

import pytest

from medssl.core.errors import DataError
from medssl.methods.facts import Coefficient, MethodFacts
from medssl.report import compare, load_run, write_comparison
from medssl.report.comparison.coefficients import coefficient_curves, named_by_coefficients
from medssl.report.figures.coefficients import coefficient_panels

USUAL = {"ce_weight": "1.0", "dice_weight": "2.0", "kl_weight": "0.005", "pseudo_samples": "5", "learning_rate": "0.1"}


@pytest.fixture
def make_runs(make_run, tmp_path):
    """Folders of runs from (seed, Dice, changed keys of the configuration)."""

    def make(*wanted, **facts):
        folders = []
        for seed, dice, keys in wanted:
            name = f"s{seed}" + "".join(f"_{key}_{value}" for key, value in keys.items())
            config = {**USUAL, **keys, "seed": str(seed), "output_dir": f"runs/{name}", "title": name}
            rows = [{"case": "x", "structure": "kidney", "dice": dice, "empty": ""}]
            name += f"_{len(list(tmp_path.iterdir()))}"
            folders.append(make_run(name, rows=rows, scans=False, seed=seed, config=config, **facts))
        return folders

    return make


def curves_of(folders):
    return coefficient_curves([load_run(folder) for folder in folders])


def test_a_point_is_mean_and_sd_over_seeds_at_a_value(make_runs):
    (curve,) = curves_of(
        make_runs((0, 0.8, {}), (1, 0.7, {}), (0, 0.5, {"kl_weight": "0.5"}), (0, 0.6, {"kl_weight": 0}))
    )["kl_weight"]

    assert [value for value, _ in curve.points] == [0, 0.005, 0.5]
    assert [stat.mean for _, stat in curve.points] == pytest.approx([0.6, 0.75, 0.5])
    assert curve.points[1][1].sd == pytest.approx(math.sqrt(0.005))
    assert math.isnan(curve.points[0][1].sd)


def test_a_default_that_no_configuration_names_is_a_point_too(make_run):
    facts = MethodFacts("mine", True, coefficients={"weight": Coefficient("$w$", "consistency")}).to_json()
    rows = [{"case": "x", "structure": "kidney", "dice": 0.8, "empty": ""}]
    shared = {"rows": rows, "scans": False, "seed": 0, "method": "mine", "method_facts": facts}
    folders = [
        make_run("usual", config={}, method_options={"weight": 0.1}, **shared),
        make_run("varied", config={"weight": "0.5"}, method_options={"weight": 0.5}, **shared),
    ]
    (curve,) = curves_of(folders)["weight"]
    assert [value for value, _ in curve.points] == [0.1, 0.5]


def test_only_keys_that_were_varied_alone_get_a_curve(make_runs):
    found = curves_of(
        make_runs(
            (0, 0.8, {}),
            (0, 0.7, {"ce_weight": "0.5"}),
            (0, 0.6, {"pseudo_samples": "1"}),
            (0, 0.5, {"dice_weight": "1.0", "kl_weight": "0"}),  # two at once
        )
    )
    assert list(found) == ["ce_weight", "pseudo_samples"]
    assert [value for value, _ in found["pseudo_samples"][0].points] == [1, 5]


def test_runs_that_differ_in_something_else_are_kept_off_the_curve(make_runs):
    runs = make_runs((0, 0.8, {}), (0, 0.7, {"kl_weight": "0.5", "learning_rate": "0.2"}))
    assert curves_of(runs) == {}
    assert curves_of(make_runs((1, 0.8, {})) + make_runs((1, 0.7, {"kl_weight": "0.5"}), labelled=8)) == {}


def test_numbers_written_differently_are_the_same_value(make_runs):
    runs = make_runs((0, 0.8, {}), (1, 0.7, {"ce_weight": "1"}), (0, 0.6, {"kl_weight": "5e-1", "ce_weight": "1.00"}))
    (curve,) = curves_of(runs)["kl_weight"]
    assert [(value, stat.n) for value, stat in curve.points] == [(0.005, 2), (0.5, 1)]


def test_unevaluated_runs_and_runs_without_a_configuration_are_left_out(make_runs, make_run):
    runs = make_runs((0, 0.8, {}), (0, 0.7, {"kl_weight": "0.5"}))
    (runs[1] / "evaluation" / "per_case.csv").unlink()
    assert curves_of([*runs, make_run("old", scans=False, config=None)]) == {}


def test_each_setting_has_its_own_curve_named_by_what_differs(make_runs):
    wanted = (0, 0.8, {}), (0, 0.7, {"kl_weight": "0.5"})
    curves = curves_of(make_runs(*wanted, labelled=4) + make_runs(*wanted, labelled=16))
    (axes,) = coefficient_panels(curves).axes

    assert [curve.setting for curve in curves["kl_weight"]] == [{"labelled": 4.0}, {"labelled": 16.0}]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["labelled 4", "labelled 16"]


def test_panels_show_points_bars_symbols_and_a_tick_at_every_value(make_runs):
    runs = make_runs(
        (0, 0.8, {}),
        (1, 0.7, {}),
        (0, 0.5, {"kl_weight": "0.5"}),
        (0, 0.6, {"kl_weight": "0"}),
        (0, 0.75, {"pseudo_samples": "1"}),
    )
    weight, draws = coefficient_panels(curves_of(runs)).axes

    assert (weight.get_title(loc="left"), draws.get_title(loc="left")) == (
        r"$\lambda_4$  KL",
        "$M$  draws per pseudo-label",
    )
    assert (weight.get_xlabel(), draws.get_xlabel()) == ("kl_weight", "pseudo_samples")
    assert [label.get_text() for label in weight.get_xticklabels()] == ["0", "0.005", "0.5"]
    assert (weight.get_xscale(), draws.get_xscale()) == ("symlog", "log")
    points, _, (bars,) = weight.containers[0]
    assert points.get_ydata() == pytest.approx([0.6, 0.75, 0.5])
    spread = math.sqrt(0.005)
    assert bars.get_segments()[1][:, 1] == pytest.approx([0.75 - spread, 0.75 + spread])
    low, high = weight.get_ylim()
    assert (low, high) == draws.get_ylim() and low < 0.5 and high > 0.75 + spread


def test_tables_give_every_unusual_value_a_row_of_its_own(make_runs):
    runs = make_runs((0, 0.8, {}), (1, 0.7, {}), (0, 0.5, {"kl_weight": "0.5"}), (0, 0.6, {"pseudo_samples": "1"}))
    rows = {row.method: row.stats["dice"].mean for row in compare(runs).rows}
    assert rows == pytest.approx({"gbdl": 0.75, "gbdl, kl_weight 0.5": 0.5, "gbdl, pseudo_samples 1": 0.6})


def test_runs_that_differ_in_other_keys_or_not_at_all_keep_their_name(make_runs):
    runs = make_runs((0, 0.8, {}), (0, 0.5, {"learning_rate": "0.5"}))
    assert {run.facts["method"] for run in named_by_coefficients([load_run(folder) for folder in runs])} == {"gbdl"}
    with pytest.raises(DataError, match="same method"):
        compare(runs)


PUSH = {"push": Coefficient(r"$\mu$", "push")}
MINE = MethodFacts("My Own", learns_from_unlabelled=True, place=5, coefficients=PUSH).to_json()


def test_a_method_of_somebody_else_brings_its_own_coefficient(make_runs, tmp_path):
    usual, pushed, other = make_runs(
        (0, 0.8, {"push": "1"}),
        (0, 0.5, {"push": "3"}),
        (0, 0.6, {"push": "1", "kl_weight": "0.5"}),  # no coefficient of this method
        method="My Own",
        method_facts=MINE,
    )
    found = compare([usual, pushed])
    (axes,) = coefficient_panels(found.coefficients).axes

    assert [row.method for row in found.rows] == ["My Own", "My Own, push 3"]
    assert list(found.coefficients) == ["push"]
    assert (axes.get_title(loc="left"), axes.get_xlabel()) == (r"$\mu$  push", "push")
    assert "My Own, push 3" in write_comparison(found, tmp_path / "page.html").read_text()
    with pytest.raises(DataError, match="same method"):
        compare([usual, other])


def test_an_option_that_is_given_where_others_have_their_default_makes_a_row(make_runs):
    runs = make_runs((0, 0.8, {}), (1, 0.7, {}), (0, 0.5, {"push": "3"}), method="My Own", method_facts=MINE)
    assert [row.method for row in compare(runs).rows] == ["My Own", "My Own, push 3"]


def test_options_given_in_one_piece_are_options_too(make_runs):
    runs = make_runs((0, 0.8, {"options::push": "1"}), (0, 0.5, {"push": "3"}), method="My Own", method_facts=MINE)
    (curve,) = curves_of(runs)["push"]
    assert [value for value, _ in curve.points] == [1, 3]


def test_a_row_of_an_unusual_value_keeps_the_facts_of_its_method(make_runs):
    """Runs made before are known by the title that this takes from them."""
    runs = [load_run(folder) for folder in make_runs((0, 0.8, {}), (1, 0.7, {}), (0, 0.5, {"kl_weight": "0.5"}))]
    named = named_by_coefficients(runs)
    assert [run.method for run in named] == ["gbdl", "gbdl", "gbdl, kl_weight 0.5"]
    assert named[2].method_facts == runs[2].method_facts


def test_runs_say_which_of_their_keys_name_a_place(make_runs):
    wanted = (0, 0.8, {"my_disk": "a"}), (0, 0.5, {"my_disk": "b", "kl_weight": "0.5"})
    assert curves_of(make_runs(*wanted, keys={"data": [], "place": ["output_dir"]})) == {}
    assert list(curves_of(make_runs(*wanted, keys={"data": [], "place": ["output_dir", "my_disk"]}))) == ["kl_weight"]


def test_the_page_has_the_figure_only_where_a_coefficient_was_varied(make_runs, tmp_path):
    usual, other = make_runs((0, 0.8, {}), (0, 0.5, {"kl_weight": "0.5"}))
    page = write_comparison(compare([usual, other]), tmp_path / "varied.html").read_text()
    assert "<h2>Coefficients</h2>" in page and page.count("<img ") == 1
    assert "Coefficients" not in write_comparison(compare([usual]), tmp_path / "plain.html").read_text()
