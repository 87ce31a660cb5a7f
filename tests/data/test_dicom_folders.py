"""Series are found wherever their files lie, and what is no scan is left alone."""

import shutil

import pydicom
import pytest
from label_app.dicom_studies import write_study

from medssl.data.dicom_folders import series_below
from medssl.data.dicom_seg import write_segmentation


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("written")
    return [write_study(folder, index) for index in (20, 21)]


@pytest.fixture
def studies(written, tmp_path):
    for study in written:
        shutil.copytree(study.folder, tmp_path / "in" / study.folder.name)
    return tmp_path / "in"


def changed(file, **elements):
    dataset = pydicom.dcmread(file)
    for name, value in elements.items():
        setattr(dataset, name, value)
    dataset.save_as(file)


def test_series_in_sub_folders_in_one_folder_and_in_two_are_the_same_series(studies, written, tmp_path):
    expected = {study.series_uid: 24 for study in written}
    sizes = {series.uid: len(series.files) for series in series_below(studies).series}
    assert sizes == expected
    (tmp_path / "mixed").mkdir()
    for study in written:
        for file in study.folder.iterdir():
            shutil.copy(file, tmp_path / "mixed" / f"{study.folder.name}_{file.name}")
    assert {series.uid: len(series.files) for series in series_below(tmp_path / "mixed").series} == expected
    (studies / "rest").mkdir()
    for file in sorted((studies / "study_20").iterdir())[::2]:
        file.rename(studies / "rest" / file.name)
    assert {series.uid: len(series.files) for series in series_below(studies).series} == expected


def test_results_hidden_folders_other_files_and_what_is_left_out_are_no_series(studies, written):
    study = written[0]
    write_segmentation(study.label, study.folder, studies / "seg.dcm", {1: "kidney", 2: "lesion"})
    shutil.copytree(study.folder, studies / ".hidden")
    shutil.copytree(written[1].folder, studies / "workspace" / "copy")
    (studies / "README.txt").write_text("no DICOM")
    found = series_below(studies, leave_out=studies / "workspace").series
    assert {series.uid: len(series.files) for series in found} == {study.series_uid: 24 for study in written}


def test_series_of_another_modality_are_counted_and_left_out(studies, written):
    for file in (studies / "study_21").iterdir():
        changed(file, Modality="MR")
    found = series_below(studies, "CT")
    assert [series.uid for series in found.series] == [written[0].series_uid] and found.other == 1
    assert len(series_below(studies).series) == 2


def test_files_without_a_series_uid_belong_to_their_folder(studies):
    for file in studies.rglob("*.dcm"):
        changed(file, SeriesInstanceUID="")
    assert [series.uid for series in series_below(studies).series] == ["study_20", "study_21"]


def test_files_that_cannot_be_parsed_are_named(studies):
    damaged = studies / "study_20" / "001.dcm"
    damaged.write_bytes(damaged.read_bytes()[:140] + b"\xff" * 40)
    found = series_below(studies)
    assert found.unreadable == (damaged,) and [len(series.files) for series in found.series].count(24) == 1
