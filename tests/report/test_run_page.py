"""report.html: complete, self-contained, escaped, and honest about what the run is."""

import json
import re

import pytest
from rich.console import Console

from medssl.core.errors import DataError
from medssl.report import load_run, summary_table, write_report
from medssl.report.figures.pictures import Picture
from medssl.report.run_page import PAPER_CROP_NOTICE


def page_of(folder):
    return write_report(folder).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(finished_run):
    """The report of a finished run, with all its pictures."""
    return page_of(finished_run)


@pytest.fixture
def undrawn(monkeypatch):
    """Pictures are not drawn, for tests of the text around them."""
    for page in ("run_page", "scan_page"):
        monkeypatch.setattr(f"medssl.report.{page}.picture", lambda *_: Picture("data:image/png;base64,", 100))


def test_report_of_a_finished_run_has_all_its_parts(page):
    assert "phantom, gbdl, 4 labelled, seed 0" in page
    assert "took 1 h 30 min" in page
    assert [name for name in ("Best: ", "Median: ", "Worst: ") if name not in page] == []
    assert page.count("<img ") == 1 + 3 + 2 + 1  # strip, cases, uncertainty, curves
    assert PAPER_CROP_NOTICE not in page
    assert "Not a medical device. For research only." in page


def test_nothing_but_the_report_is_left_behind(finished_run, page):
    written = {path.name for path in finished_run.iterdir()}
    assert written - {"run.json", "split.json", "history.jsonl", "evaluation"} == {"report.html"}


def test_cases_are_listed_worst_first(page):
    table = page.split("Every case</h2>")[1]
    assert re.findall(r"case_[a-d]", table) == ["case_c", "case_d", "case_b", "case_a"]


def test_report_needs_nothing_from_outside(page):
    assert not re.search(r"https?://|//[a-z]+\.|<script|<link|@import|url\(", page)
    assert re.findall(r'src="(?!data:image/png;base64,)', page) == []


def test_report_tells_neither_paths_nor_patients(finished_run, page):
    assert [
        word for word in (str(finished_run.parent), "/home/", "/opt/", "jane", "Jane", "secret") if word in page
    ] == []


def test_report_of_the_same_run_is_the_same(make_run):
    folder = make_run(rows=None)
    assert page_of(folder) == page_of(folder)


def test_paper_crop_is_announced(make_run, undrawn):
    assert PAPER_CROP_NOTICE in page_of(make_run(paper_crop=True))


@pytest.mark.parametrize(("status", "words"), [("failed", "This run failed"), ("running", "had not finished")])
def test_an_unfinished_run_says_so_and_shows_what_is_there(make_run, undrawn, status, words):
    folder = make_run(rows=None, status=status, finished=None)
    page = page_of(folder)

    assert words in page
    assert "no evaluation yet" in page
    assert page.count("<img ") == 1


def test_a_run_without_test_cases_says_why_it_has_no_scores(make_run, undrawn):
    page = page_of(make_run(rows=None, test=0))
    assert "no cases to evaluate" in page and "--test a number from 1 on" in page


def test_a_run_with_nothing_but_its_facts_can_be_reported(make_run, undrawn):
    folder = make_run(rows=None, status="failed", config=None)
    for name in ("history.jsonl", "split.json"):
        (folder / name).unlink()
    assert "no training history" in page_of(folder)


def test_markup_in_names_is_escaped(make_run, undrawn):
    evil = "<script>alert('x')</script>"
    rows = [{"case": evil, "structure": "<b>kidney</b>", "dice": 0.5, "empty": ""}]
    page = page_of(make_run(rows=rows, structures={"1": evil}, method=evil, command=evil, config={evil: evil}))

    assert "<script" not in page
    assert "<b>kidney" not in page
    assert "&lt;script&gt;" in page


def test_numbers_stand_where_the_scans_are_gone(make_run, undrawn, tmp_path):
    folder = make_run()
    (tmp_path / "scans" / "case_a.nii.gz").unlink()
    page = page_of(folder)

    assert "No picture: …/case_a.nii.gz" in page
    assert page.count("<img ") == 6


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(DataError, match="not a run folder"):
        write_report(tmp_path)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "counted over the whole scan"),
        ({"pavpu_region": "body"}, "counted over the body"),
        ({"pavpu_region": "structures", "pavpu_distance_mm": 10.0}, "counted over 10 mm around structures"),
    ],
)
def test_page_and_table_say_where_pavpu_was_counted(make_run, undrawn, settings, text):
    folder = make_run()
    (folder / "evaluation" / "settings.json").write_text(json.dumps(settings))
    assert text in page_of(folder)
    console = Console(width=100, record=True)
    console.print(summary_table(load_run(folder)))
    assert text.replace("counted", "PAvPU") in console.export_text()


def test_distances_in_voxels_are_shown_where_they_were_measured(make_run, undrawn):
    rows = [{"case": "a", "structure": "kidney", "dice": 0.5, "hd95_mm": 3.0, "hd95_voxels": 7.25, "empty": ""}]
    page = page_of(make_run(rows=rows))
    assert "HD95 (voxels)" in page and "7.25" in page
    assert "(voxels)" not in page_of(make_run("plain"))
