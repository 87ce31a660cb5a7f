"""A task is found by its name in run.json; one that is not installed is named with the way out."""

import importlib.metadata
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from medssl import cli
from medssl.core.errors import ConfigError, DataError
from medssl.report import compare, load_run, write_report
from medssl.report.segmentation import SEGMENTATION
from medssl.report.tasks import find_task

FLIPPED = replace(SEGMENTATION, name="flipped", cases="flipped scans", write_sample_curve=lambda *given: given[0] / "x")


@pytest.fixture
def installed(monkeypatch):
    """Entry points by name; the value is what loading one gives, or the error that it raises."""
    entries = {}

    class Entry:
        def __init__(self, value):
            self.value = value

        def load(self):
            if isinstance(self.value, Exception):
                raise self.value
            return self.value

    def entry_points(group, name=None):
        return [Entry(entries[name])] if group == "medssl.tasks" and name in entries else []

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    find_task.cache_clear()
    yield entries
    find_task.cache_clear()


def test_a_run_without_a_task_segments_scans(finished_run):
    assert load_run(finished_run).task is SEGMENTATION


def test_a_package_adds_its_task_by_an_entry_point(make_run, installed):
    installed["flipped"] = FLIPPED
    folder = make_run(task="flipped", rows=None)
    assert load_run(folder).task is FLIPPED
    assert "4 test flipped scans" in write_report(folder).read_text()
    result = CliRunner().invoke(cli.app, ["samples", str(folder)])
    assert result.exit_code == 0 and str(folder / "x") in result.stdout.replace("\n", "")


@pytest.mark.parametrize("problem", [ModuleNotFoundError("No module named 'timm'"), ConfigError("needs timm")])
def test_a_task_whose_extra_is_missing_is_an_error_that_names_it(make_run, installed, problem):
    installed["classification"] = problem
    with pytest.raises(
        ConfigError, match=r"run\.json: task 'classification' .*timm.* pip install \"medssl\[natural\]\""
    ):
        load_run(make_run(task="classification"))


def test_a_task_that_nobody_knows_is_an_error(make_run, installed):
    with pytest.raises(DataError, match=r"run\.json: task 'dreams' is unknown.* pip install \"medssl\[natural\]\""):
        load_run(make_run(task="dreams"))


def test_the_command_says_it_without_a_traceback(make_run, installed, monkeypatch, capsys):
    installed["scenes"] = ModuleNotFoundError("No module named 'timm'")
    monkeypatch.setattr("sys.argv", ["medssl", "report", str(make_run(task="scenes"))])
    with pytest.raises(SystemExit):
        cli.main()
    shown = capsys.readouterr().err
    assert shown.startswith("ConfigError: ") and 'pip install "medssl[natural]"' in shown and "Traceback" not in shown


def test_runs_of_different_tasks_are_not_compared(make_run, installed):
    installed["flipped"] = FLIPPED
    with pytest.raises(ConfigError, match="different kinds"):
        compare([make_run("a", scans=False), make_run("b", scans=False, task="flipped")])
