"""The page that compares runs, and the command that writes it."""

import json
import re

import pytest
from typer.testing import CliRunner

from medssl import cli
from medssl.core.errors import ConfigError
from medssl.report import PAPER_CROP_NOTICE, compare, write_comparison

CASES = {"a": 0.51, "b": 0.62, "c": 0.43}


def page_of(runs, out, *against):
    return write_comparison(compare([run.folder for run in runs], against), out / "page.html").read_text()


@pytest.fixture
def folders(run_of):
    """Two methods with two seeds each, in any order."""
    methods = [("GBDL", 0.1), ("self-training", 0.0)]
    return [
        run_of(method, {case: value + gain for case, value in CASES.items()}, seed=seed).folder
        for seed in (1, 0)
        for method, gain in methods
    ]


def test_page_shows_results_runs_and_what_is_missing(make_run, tmp_path):
    rows = [{"case": "x", "structure": "kidney", "dice": 0.5, "empty": ""}]
    runs = [make_run("a", scans=False), make_run("b", rows=rows, scans=False, seed=1, paper_crop=True)]
    runs.append(make_run("c", rows=None, scans=False, method="uamt"))
    page = write_comparison(compare(runs), tmp_path / "out" / "comparison.html").read_text()

    assert PAPER_CROP_NOTICE in page
    assert "not in the means: c." in page
    assert page.count("<tr>") == 2 + 3 + 3
    assert "Differences" not in page
    assert not re.search(r"https?://|src=", page)


def test_pavpu_of_other_regions_than_whole_scans_is_told(make_run):
    folders = [make_run(name, scans=False, seed=seed) for seed, name in enumerate("ab")]
    assert compare(folders).notices == []
    for regions, text in (("bb", "PAvPU is counted over the body."), ("sb", "different regions (the body; the whole")):
        for folder, region in zip(folders, regions, strict=True):
            settings = {"pavpu_region": {"b": "body", "s": "scan"}[region]}
            (folder / "evaluation" / "settings.json").write_text(json.dumps(settings))
        (notice,) = compare(folders).notices
        assert text in notice


def test_page_shows_differences_before_the_single_runs(folders, tmp_path):
    page = write_comparison(compare(folders, ["self-training"], ["hd95"]), tmp_path / "page.html").read_text()

    assert page.index("Results</h2>") < page.index("Differences</h2>") < page.index("Every run</h2>")
    assert "phantom: Dice against self-training (points)" in page
    assert "phantom: 95HD against self-training (mm)" in page
    assert "<b>+10.00 *</b>" in page
    assert "1 of 2 such experiments with 2 seeds" in page


def test_groups_of_labels_are_set_apart(run_of, tmp_path):
    runs = [run_of("GBDL", CASES, labelled=labelled) for labelled in (4, 16)]
    assert page_of(runs, tmp_path).count('<tr class="first">') == 1


def test_markup_in_names_is_escaped(run_of, tmp_path):
    evil = "<script>alert('x')</script>"
    runs = [run_of(name, CASES, dataset="<b>set</b>", labelled=n) for name in (evil, "<i>base</i>") for n in (4, 5)]
    runs.append(run_of(evil, CASES, dataset="<b>set</b>", seed=7, labelled=4))  # makes a note
    page = page_of(runs, tmp_path, "<i>base</i>")

    assert not re.search(r"<script|<i>|<b>set", page)
    assert "&lt;script&gt;" in page
    assert "seed 7: the baseline lacks it" in page


def test_same_runs_give_the_same_page_in_any_order(folders, tmp_path):
    pages = [write_comparison(compare(order, ["GBDL"]), tmp_path / "page.html") for order in (folders, folders[::-1])]
    texts = [page.read_text() for page in pages]
    assert texts[0] == texts[1]


def test_command_writes_page_csv_and_markdown(folders, tmp_path):
    page, markdown = tmp_path / "out" / "evidence.html", tmp_path / "out" / "tables.md"
    options = ["--against", "self-training", "--metric", "hd95", "--output", page, "--markdown", markdown]
    result = CliRunner().invoke(cli.app, [str(word) for word in ("report", *folders, *options)])

    assert result.exit_code == 0
    assert "+10.00 *" in result.stdout
    assert page.is_file()
    assert markdown.read_text(encoding="utf-8").startswith("### phantom\n")
    assert (tmp_path / "out" / "evidence_differences.csv").read_text().count("\n") == 1 + 2


def test_command_without_a_baseline_writes_no_differences(folders, tmp_path):
    arguments = ["report", *folders, "--output", tmp_path / "page.html"]
    result = CliRunner().invoke(cli.app, [str(word) for word in arguments])

    assert result.exit_code == 0
    assert not list(tmp_path.glob("*.csv"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--metric", "hd95"], "give a method with --against"),
        (["--against", "nobody"], "--against and --markdown compare runs"),
    ],
)
def test_options_that_need_more_are_refused(folders, options, message):
    result = CliRunner().invoke(cli.app, ["report", str(folders[0]), *options])
    assert isinstance(result.exception, ConfigError)
    assert message in str(result.exception)
