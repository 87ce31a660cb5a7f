"""A path in a run is found again: from any folder, after a move of the run, of the project, and in runs of before."""

import shutil

import pytest

from medssl.core.stored_paths import is_there, located, places_of_writing, tried_places


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with a scan and the folder of a run, which is the working directory."""
    (tmp_path / "project" / "runs" / "one").mkdir(parents=True)
    (tmp_path / "project" / "data").mkdir()
    (tmp_path / "project" / "data" / "a.nii.gz").touch()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def test_path_stays_as_it_is_in_the_folder_it_was_written_in(project):
    assert located("data/a.nii.gz", "runs/one", places_of_writing("runs/one")) == "data/a.nii.gz"


def test_relative_path_is_found_from_another_folder_and_after_a_move_of_the_run(project, tmp_path, monkeypatch):
    written = places_of_writing("runs/one")
    monkeypatch.chdir(tmp_path)
    shutil.move(project / "runs" / "one", tmp_path / "moved")
    assert located("data/a.nii.gz", "moved", written) == str(project / "data" / "a.nii.gz")


@pytest.mark.parametrize("is_absolute", [False, True])
def test_path_is_found_after_the_whole_project_moved(project, tmp_path, monkeypatch, is_absolute):
    written, path = places_of_writing("runs/one"), "data/a.nii.gz"
    path = str(project / path) if is_absolute else path
    monkeypatch.chdir(tmp_path)
    shutil.move(project, tmp_path / "elsewhere")
    found = located(path, tmp_path / "elsewhere" / "runs" / "one", written)
    assert found == str(tmp_path / "elsewhere" / "data" / "a.nii.gz")


def test_data_of_the_training_go_before_data_of_the_same_name_here(project, tmp_path, monkeypatch):
    written = places_of_writing("runs/one")
    (tmp_path / "other" / "data").mkdir(parents=True)
    (tmp_path / "other" / "data" / "a.nii.gz").touch()
    monkeypatch.chdir(tmp_path / "other")
    assert located("data/a.nii.gz", project / "runs" / "one", written) == str(project / "data" / "a.nii.gz")


def test_run_of_before_is_looked_for_around_its_folder(project, tmp_path, monkeypatch):
    assert located("data/a.nii.gz", "runs/one") == "data/a.nii.gz"
    monkeypatch.chdir(tmp_path)
    assert located("data/a.nii.gz", project / "runs" / "one") == str(project / "data" / "a.nii.gz")


def test_what_is_nowhere_keeps_its_path_and_every_place_is_named(project):
    assert located("data/b.nii.gz", "runs/one") == "data/b.nii.gz"
    places = tried_places("data/b.nii.gz", "runs/one", {"working_dir": "/w", "run_dir": "/w/runs/one"})
    assert places[0] == "/w/data/b.nii.gz" and str(project / "data" / "b.nii.gz") in places
    assert len(places) == len(set(places))


def test_address_of_a_dataset_inside_a_file_keeps_its_key(project, tmp_path, monkeypatch):
    (project / "data" / "a.h5").touch()
    written = places_of_writing("runs/one")
    monkeypatch.chdir(tmp_path)
    address = located("data/a.h5::image", project / "runs" / "one", written)
    assert address == f"{project}/data/a.h5::image" and is_there(address)
