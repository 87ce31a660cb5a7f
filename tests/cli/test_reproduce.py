"""`medssl reproduce` lists without data, prints commands, and refuses what it cannot make."""

import pytest
from rich.console import Console

from medssl import cli


def test_list_names_tables_data_sets_and_where_to_get_them(ended, tmp_path, monkeypatch):
    monkeypatch.setattr(cli.reproduce, "console", Console(width=200))
    end = ended("reproduce", "--data", tmp_path / "none", "--output_dir", tmp_path / "runs")
    assert end.code == 0
    assert "3.1" in end.text and "fig3.2" in end.text and "figA.1" in end.text
    assert "kits19 missing" in end.text and "https://github.com/neheller/kits19" in end.text
    assert "No GPU was timed" in end.text and "not started" in end.text


def test_dry_run_prints_every_command_and_writes_nothing(ended, tmp_path):
    end = ended(
        "reproduce", "3.5", "--data", tmp_path / "none", "--output", tmp_path / "runs", "--dry-run", "--seeds", "0,1"
    )
    assert end.code == 0 and not (tmp_path / "runs").exists()
    assert end.text.count("python -m monai.bundle run training") >= 4
    assert f"--dataset_dir {tmp_path}/none/liver" in end.text and "--labelled 100" in end.text
    assert "gbdl_5_seed1" in end.text and "--validation 0" in end.text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["3.9"], "table or figure '3.9' is unknown"),
        (["fig3.22"], "Did you mean 'fig3.2'?"),
        (["A.1"], "Table A.1 has no results to make"),
        (["3.1", "--data", "nowhere"], "--data nowhere: no such folder"),
        (["--bench"], "Give its number, e.g. 3.1"),
    ],
)
def test_what_cannot_be_made_is_refused(ended, tmp_path, monkeypatch, arguments, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    end = ended("reproduce", *arguments)
    assert end.code == 1 and text in end.text
