"""Predictions of DICOM series as DICOM files: the voxels of the maps, tied to their series; no text names a patient."""

import json
import logging
import shutil
import sys

import numpy as np
import pydicom
import pytest
import torch
from label_app.dicom_studies import PATIENT, write_study
from torch import nn
from typer.testing import CliRunner

from medssl.cli import app
from medssl.core.errors import ConfigError, DataError
from medssl.data import Pipeline, facts_from_json, scans_in
from medssl.data.dicom_map import read_parametric_map
from medssl.data.dicom_seg import open_segmentation, read_segmentation
from medssl.data.volumes import read_volume, write_nifti
from medssl.inference import MCDropoutInferer, PredictionEngine, Predictor, write_dicom
from medssl.uncertainty.ranking import BANDS, uncertainty_bands

pytest.importorskip("highdicom")

WINDOW = (64, 64, 24)


class Threshold(nn.Module):
    """Calls bright voxels foreground, and is unsure of those in between."""

    def forward(self, x):
        return torch.cat([torch.zeros_like(x), x * 4 - 2], dim=1)


@pytest.fixture(scope="module")
def predictor():
    facts = facts_from_json(
        "folder",
        window=[-100, 250],
        slice_size=None,
        region_size=None,
        patch_size=list(WINDOW),
        label_map={"1": 1},
        structures={"1": "bright"},
    )
    return Predictor(Threshold(), Pipeline(facts), MCDropoutInferer(WINDOW, WINDOW, samples=1))


@pytest.fixture(scope="module")
def drawn_studies(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studies")
    return [write_study(folder, 0), write_study(folder, 1, coronal=True)]


@pytest.fixture
def studies(drawn_studies, tmp_path):
    """A folder of two series, study_0 in axial and study_1 in coronal slices."""
    for study in drawn_studies:
        shutil.copytree(study.folder, tmp_path / "studies" / study.folder.name)
    return tmp_path / "studies"


def predict(predictor, scans, out, with_dicom=True, **options):
    engine = PredictionEngine(predictor, scans_in(scans), out, with_dicom=with_dicom, **options)
    engine.run()
    return engine


def test_dicom_files_hold_the_voxels_of_the_maps_and_refer_to_the_series(predictor, studies, drawn_studies, tmp_path):
    out = tmp_path / "out"
    assert predict(predictor, studies, out).failures == {}
    for study in drawn_studies:
        name = study.folder.name
        seg, entropy = (read_volume(out / f"{name}_{kind}.nii.gz") for kind in ("seg", "entropy"))
        bands = uncertainty_bands(entropy.array, num_classes=2)
        assert set(np.unique(seg.array)) == {0, 1} and set(np.unique(bands)) == {0, 1, 2, 3}
        np.testing.assert_array_equal(read_segmentation(out / f"{name}_seg.dcm").array, seg.array)
        np.testing.assert_array_equal(read_parametric_map(out / f"{name}_entropy.dcm").array, entropy.array)
        np.testing.assert_array_equal(read_segmentation(out / f"{name}_bands.dcm").array, bands)
        assert open_segmentation(out / f"{name}_seg.dcm").structures == {1: "bright"}
        assert open_segmentation(out / f"{name}_bands.dcm").structures == BANDS
        written = [pydicom.dcmread(out / f"{name}_{kind}.dcm") for kind in ("seg", "entropy", "bands")]
        for dataset in written:
            (listed,) = dataset.ReferencedSeriesSequence
            assert (dataset.StudyInstanceUID, listed.SeriesInstanceUID) == (study.uid, study.series_uid)
            assert len(listed.ReferencedInstanceSequence) == study.scan.shape[2]
        for distinct in ("SeriesInstanceUID", "SOPInstanceUID", "SeriesNumber", "SeriesDescription"):
            assert len({str(dataset[distinct].value) for dataset in written}) == 3


def test_finished_series_are_skipped_until_a_file_is_missing(predictor, studies, tmp_path):
    out = tmp_path / "out"
    predict(predictor, studies, out)
    assert predict(predictor, studies, out).skipped == ["study_0", "study_1"]
    (out / "study_1_bands.dcm").unlink()
    again = predict(predictor, studies, out)
    assert (again.skipped, again.finished) == (["study_0"], ["study_1"])
    assert (out / "study_1_bands.dcm").is_file()


def test_dicom_files_can_be_asked_for_later_and_stay_while_they_are_current(predictor, studies, tmp_path):
    out = tmp_path / "out"
    predict(predictor, studies, out, with_dicom=False, with_probabilities=False)
    assert not list(out.glob("*.dcm"))
    assert len(predict(predictor, studies, out, with_probabilities=False).finished) == 2
    made = {path.name: path.read_bytes() for path in out.glob("*.dcm")}
    assert len(made) == 6
    assert len(predict(predictor, studies, out, with_dicom=False).finished) == 2  # now with probabilities
    assert {path.name: path.read_bytes() for path in out.glob("*.dcm")} == made


def test_no_dicom_file_of_other_weights_stays_beside_new_maps(predictor, studies, tmp_path, monkeypatch):
    out = tmp_path / "out"
    predict(predictor, studies, out)
    monkeypatch.setattr(predictor, "weights_digest", lambda: "other")
    predict(predictor, studies, out, with_dicom=False)
    assert not list(out.glob("*.dcm"))
    assert len(predict(predictor, studies, out).finished) == 2 and len(list(out.glob("*.dcm"))) == 6


def test_scan_that_is_no_series_fails_and_the_rest_is_done(predictor, studies, tmp_path):
    scan = read_volume(studies / "study_0")
    write_nifti(studies / "plain.nii.gz", scan.array, scan.affine, np.int16)
    engine = predict(predictor, studies, tmp_path / "out")
    assert engine.finished == ["study_0", "study_1"]
    assert "plain.nii.gz: no DICOM series, expected a folder of DICOM slices" in engine.failures["plain"]
    assert not list((tmp_path / "out").glob("plain*"))


def remove_element(series, name):
    """Take one element out of every slice."""
    for file in series.iterdir():
        dataset = pydicom.dcmread(file)
        delattr(dataset, name)
        dataset.save_as(file)


@pytest.mark.parametrize("uid", ["SeriesInstanceUID", "FrameOfReferenceUID"])
def test_series_that_cannot_be_referred_to_has_its_maps_and_fails_in_its_dicom_part(
    uid, predictor, studies, tmp_path, caplog
):
    remove_element(studies / "study_0", uid)
    with caplog.at_level(logging.DEBUG):
        engine = predict(predictor, studies, tmp_path / "out")
    reason = engine.failures["study_0"]
    assert engine.finished == ["study_1"] and f"no {uid}, expected one, to refer to the series" in reason
    assert reason.endswith("The .nii.gz maps of study_0 are written, its DICOM files are not.")
    made = sorted(path.name for path in (tmp_path / "out").glob("study_0*"))
    assert made == ["study_0.json", *(f"study_0_{kind}.nii.gz" for kind in ("entropy", "prob", "seg"))]
    assert json.loads((tmp_path / "out" / "failures.json").read_text()) == engine.failures
    told = caplog.text + "".join(path.read_text() for path in (tmp_path / "out").glob("*.json"))
    assert not [secret for secret in PATIENT.values() if secret in told]


def test_next_run_tries_the_dicom_part_again_and_predicts_nothing(predictor, studies, tmp_path, monkeypatch):
    out, whole = tmp_path / "out", tmp_path / "whole"
    predict(predictor, studies, whole)
    real_series = tmp_path / "series"
    shutil.copytree(studies, real_series)
    remove_element(studies / "study_0", "SeriesInstanceUID")
    predict(predictor, studies, out)
    monkeypatch.setattr(Predictor, "__call__", lambda *_: pytest.fail("predicted again"))
    again = predict(predictor, studies, out)
    assert (again.skipped, list(again.failures)) == (["study_1"], ["study_0"])
    # the scan's digest changes with its headers, so that the writer is mended, not the scan
    monkeypatch.setattr(
        "medssl.inference.batch.write_dicom",
        lambda stored, series, *rest: write_dicom(stored, real_series / series.name, *rest),
    )
    mended = predict(predictor, studies, out)
    assert (mended.skipped, mended.finished, mended.failures) == (["study_1"], ["study_0"], {})
    assert json.loads((out / "failures.json").read_text()) == {}
    for kind in ("seg", "bands"):
        ours, theirs = (read_segmentation(folder / f"study_0_{kind}.dcm").array for folder in (out, whole))
        np.testing.assert_array_equal(ours, theirs)


def test_odd_values_of_a_series_are_not_quoted(predictor, studies, tmp_path, caplog, capfd):
    for file in (studies / "study_0").iterdir():
        file.write_bytes(file.read_bytes().replace(b"20200102", b"Secret02"))
    with caplog.at_level(logging.DEBUG):
        engine = predict(predictor, studies, tmp_path / "out")
    told = caplog.text + "".join(capfd.readouterr()) + json.dumps(engine.failures)
    assert engine.failures == {} and "secret" not in told.lower()


def test_lack_of_highdicom_is_told_before_the_first_scan(predictor, studies, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "highdicom", None)
    with pytest.raises(ConfigError, match=r"pip install 'medssl\[dicom\]'"):
        PredictionEngine(predictor, scans_in(studies), tmp_path / "out", with_dicom=True)
    assert predict(predictor, studies, tmp_path / "out", with_dicom=False).failures == {}


@pytest.mark.parametrize("folder", ["study_0", "study_0/out"])
def test_predictions_are_not_written_into_a_series(folder, predictor, studies):
    with pytest.raises(ConfigError, match="another folder"):
        PredictionEngine(predictor, scans_in(studies / "study_0"), studies / folder)


def test_prediction_of_another_series_is_refused(predictor, studies, tmp_path):
    (case,) = scans_in(studies / "study_0")
    prediction = predictor(case)
    with pytest.raises(DataError, match="do not fit the series"):
        write_dicom(prediction, studies / "study_1", tmp_path / "out", predictor.structures)
    paths = write_dicom(prediction, studies / "study_0", tmp_path / "out", predictor.structures)
    assert [path.name for path in paths] == ["study_0_seg.dcm", "study_0_entropy.dcm", "study_0_bands.dcm"]
    assert all(path.is_file() for path in paths)


def test_command_writes_dicom_files_and_says_nothing_of_the_patient(trained_run, phantom_dir, studies, tmp_path):
    shutil.rmtree(studies / "study_1")
    shutil.copy(phantom_dir / "images" / "phantom_000.nii.gz", studies / "plain.nii.gz")
    out = tmp_path / "out"
    arguments = ["predict", str(studies), str(out), "--bundle", str(trained_run), "--samples", "1", "--dicom"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 3 and "1 predicted" in result.stdout and "no DICOM series" in result.stdout
    assert len(list(out.glob("study_0*.dcm"))) == 3
    told = result.output + "".join(path.read_text() for path in out.glob("*.json"))
    assert not [secret for secret in PATIENT.values() if secret in told]
    (studies / "plain.nii.gz").unlink()
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 0 and "1 already there" in again.stdout
