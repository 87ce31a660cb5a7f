"""The folder of a run is refused before anything takes time, and nothing is written to find out."""

import os

import pytest

from medssl.core.errors import ConfigError
from medssl.core.output_folder import require_output_folder


def test_a_new_folder_and_an_empty_one_are_taken_and_not_made(tmp_path, monkeypatch):
    require_output_folder(tmp_path / "runs" / "new", resume=False)
    require_output_folder(tmp_path, resume=False)
    monkeypatch.chdir(tmp_path)
    require_output_folder(tmp_path.relative_to(tmp_path) / "runs" / "new", resume=True)
    assert not any(tmp_path.iterdir())


def test_a_file_in_the_way_is_named(tmp_path):
    file = tmp_path / "runs"
    file.touch()
    with pytest.raises(ConfigError, match=r"runs: is a file, expected the folder of the run\. Choose another"):
        require_output_folder(file / "new", resume=True)


def test_a_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write anywhere
    with pytest.raises(ConfigError) as caught:
        require_output_folder(tmp_path / "runs" / "new", resume=False)
    assert str(caught.value) == (
        f"{tmp_path}: cannot be written, expected a folder for the run. Choose another --output_dir."
    )


def test_a_run_that_is_there_is_only_gone_on_with(tmp_path):
    (tmp_path / "run.json").touch()
    require_output_folder(tmp_path, resume=True)
    with pytest.raises(ConfigError, match=r"holds a run already\. Continue it with --resume true"):
        require_output_folder(tmp_path, resume=False)
