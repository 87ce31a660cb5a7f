"""Prediction of many scans: faults stay with their scan, nothing is done twice, shards give the bytes of one run."""

import errno
import json
import re
import shutil
import subprocess
import sys

import nibabel as nib
import numpy as np
import pytest
from typer.testing import CliRunner

from medssl.cli import app
from medssl.core.errors import ConfigError, MedsslError
from medssl.core.files import FolderLock
from medssl.data.layouts import scans_in
from medssl.data.volumes import write_nifti
from medssl.inference import PredictionEngine, load_predictor
from medssl.inference.batch import parse_shard


@pytest.fixture(scope="module")
def predictor(trained_run):
    return load_predictor(trained_run, samples=1)


@pytest.fixture
def scans(phantom_dir, tmp_path):
    """Four scans, the second one cut off."""
    folder = tmp_path / "scans"
    folder.mkdir()
    for index in range(4):
        name = f"phantom_{index:03d}.nii.gz"
        shutil.copy(phantom_dir / "images" / name, folder / name)
    bad = folder / "phantom_001.nii.gz"
    bad.write_bytes(bad.read_bytes()[:900])
    return folder


def predict(predictor, scans, out, **options):
    engine = PredictionEngine(predictor, scans_in(scans), out, **options)
    engine.run()
    return engine


def test_one_bad_scan_is_recorded_and_the_rest_is_done(predictor, scans, tmp_path):
    engine = predict(predictor, scans, tmp_path / "out")
    assert engine.finished == ["phantom_000", "phantom_002", "phantom_003"]
    failures = json.loads((tmp_path / "out" / "failures.json").read_text())
    assert list(failures) == ["phantom_001"] and "phantom_001.nii.gz" in failures["phantom_001"]
    assert not list((tmp_path / "out").glob("phantom_001*")) and not list((tmp_path / "out").glob(".*.part"))


def test_maps_have_the_scans_grid(predictor, scans, tmp_path):
    predict(predictor, scans, tmp_path / "out")
    source = nib.load(scans / "phantom_000.nii.gz")
    for name in ("seg", "prob", "entropy"):
        image = nib.load(tmp_path / "out" / f"phantom_000_{name}.nii.gz")
        assert image.shape == source.shape and np.allclose(image.affine, source.affine, atol=1e-4)
    prob = nib.load(tmp_path / "out" / "phantom_000_prob.nii.gz").get_fdata()
    seg = nib.load(tmp_path / "out" / "phantom_000_seg.nii.gz").get_fdata()
    assert np.array_equal(prob > 0.5, seg == 1)
    record = json.loads((tmp_path / "out" / "phantom_000.json").read_text())
    voxel_ml = float(np.prod(source.header.get_zooms())) / 1000
    assert record["structures"]["kidney"]["volume_ml"] == pytest.approx(seg.sum() * voxel_ml, rel=1e-3)


def test_finished_scans_are_skipped_until_the_weights_change(predictor, scans, tmp_path, monkeypatch):
    predict(predictor, scans, tmp_path / "out")
    again = predict(predictor, scans, tmp_path / "out")
    assert again.finished == [] and len(again.skipped) == 3 and list(again.failures) == ["phantom_001"]
    monkeypatch.setattr(predictor, "weights_digest", lambda: "other")
    assert len(predict(predictor, scans, tmp_path / "out").finished) == 3


def test_another_scan_of_the_same_name_is_not_taken_for_the_old_one(predictor, scans, tmp_path):
    predict(predictor, scans, tmp_path / "out")
    shutil.copy(scans / "phantom_003.nii.gz", scans / "phantom_002.nii.gz")
    assert predict(predictor, scans, tmp_path / "out").finished == ["phantom_002"]


def test_a_missing_map_is_made_again(predictor, scans, tmp_path):
    predict(predictor, scans, tmp_path / "out", with_probabilities=False)
    assert len(predict(predictor, scans, tmp_path / "out").finished) == 3
    (tmp_path / "out" / "phantom_000_entropy.nii.gz").unlink()
    assert predict(predictor, scans, tmp_path / "out").finished == ["phantom_000"]


def test_predictions_are_not_written_among_the_scans(predictor, scans):
    with pytest.raises(ConfigError, match="another folder"):
        predict(predictor, scans, scans)


def test_failures_can_end_a_program(predictor, scans, tmp_path):
    engine = predict(predictor, scans, tmp_path / "out")
    with pytest.raises(MedsslError, match="1 of 4 cases failed"):
        engine.raise_failures()


def test_scan_without_its_record_is_done_again(predictor, scans, tmp_path):
    predict(predictor, scans, tmp_path / "out")
    (tmp_path / "out" / "phantom_002.json").unlink()  # as after a kill: the record is the last file of a scan
    assert predict(predictor, scans, tmp_path / "out").finished == ["phantom_002"]


def test_shards_give_the_same_bytes_as_one_run(predictor, scans, tmp_path):
    predict(predictor, scans, tmp_path / "one")
    for index in (1, 2, 3):
        predict(predictor, scans, tmp_path / "many", shard=f"{index}/3")
    whole = {p.name: p.read_bytes() for p in (tmp_path / "one").glob("phantom*")}
    parts = {p.name: p.read_bytes() for p in (tmp_path / "many").glob("phantom*")}
    assert whole == parts and len(whole) == 12


@pytest.fixture
def full_disk(monkeypatch):
    """A disk that has no room for the entropy map of phantom_002."""

    def write(path, *rest):
        if path.name == "phantom_002_entropy.nii.gz":
            raise OSError(errno.ENOSPC, "No space left on device")
        write_nifti(path, *rest)

    monkeypatch.setattr("medssl.inference.outputs.write_nifti", write)


def test_full_disk_leaves_no_lone_map_says_how_much_is_free_and_ends(predictor, scans, tmp_path, full_disk):
    out = tmp_path / "out"
    engine = predict(predictor, scans, out)
    assert engine.finished == ["phantom_000"] and engine.untried == 1
    text = r"out: no space left for the files of phantom_002 \(\d+ MB are free .*\. None of them was written\. Free"
    assert re.search(text, engine.failures["phantom_002"])
    assert not list(out.glob("phantom_002*")) and not list(out.glob(".*.part"))
    assert "phantom_002" in json.loads((out / "failures.json").read_text())


def test_full_disk_leaves_the_outputs_of_an_earlier_prediction(predictor, scans, tmp_path, monkeypatch, request):
    out = tmp_path / "out"
    predict(predictor, scans, out)
    before = {path.name: path.read_bytes() for path in out.glob("phantom_002*")}
    monkeypatch.setattr(predictor, "weights_digest", lambda: "other")
    request.getfixturevalue("full_disk")
    assert "phantom_002" in predict(predictor, scans, out).failures
    assert len(before) == 4 and {path.name: path.read_bytes() for path in out.glob("phantom_002*")} == before


def test_full_disk_that_has_no_room_for_the_failures_either_is_told(predictor, scans, tmp_path, monkeypatch, caplog):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("medssl.inference.batch.write_text_atomically", full)
    engine = predict(predictor, scans, tmp_path / "out")
    assert list(engine.failures) == ["phantom_001"] and "failures.json: could not be written" in caplog.text


def test_scan_that_needs_more_memory_than_there_is_fails_alone(predictor, scans, tmp_path, monkeypatch):
    large = nib.load(scans / "phantom_002.nii.gz")
    doubled = np.concatenate([large.get_fdata(), large.get_fdata()], axis=2)
    write_nifti(scans / "phantom_002.nii.gz", doubled, large.affine, np.int16)
    monkeypatch.setattr("medssl.core.memory.available_bytes", lambda device: 8_000_000)
    monkeypatch.setattr(predictor.inferer, "working_bytes", lambda *_: 0.0)
    engine = predict(predictor, scans, tmp_path / "out")
    assert engine.finished == ["phantom_000", "phantom_003"]
    text = r"^predicting phantom_002 needs about 10 MB, 8 MB are free\. Resample the scan to fewer voxels, cut it"
    assert re.search(text, engine.failures["phantom_002"])


def test_log_tells_how_far_scans_and_windows_are(predictor, scans, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("medssl.core.progress.LINE_SECONDS", 0.01)
    predict(predictor, scans, tmp_path / "out")
    lines = capsys.readouterr().err
    text = r"prediction: \d of 4 scans, phantom_00\d, windows: \d+ of \d+ passes \(\d+ s"
    assert re.search(text, lines)


def test_second_process_on_the_same_folder_is_refused(predictor, scans, tmp_path):
    with FolderLock(tmp_path / "out"), pytest.raises(ConfigError, match="another process"):
        predict(predictor, scans, tmp_path / "out")


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "a/b", "1/0", "-1/2"])
def test_impossible_shards_are_refused(shard):
    with pytest.raises(ConfigError, match="expected i/n"):
        parse_shard(shard)


def test_reason_of_a_failure_is_printed_once(trained_run, scans, tmp_path):
    arguments = ["predict", str(scans), str(tmp_path / "out"), "--bundle", str(trained_run), "--samples", "1"]
    command = [sys.executable, "-c", "from medssl.cli import main; main()", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert (done.stdout + done.stderr).count("ends too early") == 1


def test_command_ends_with_3_if_a_scan_failed_and_0_if_none(trained_run, scans, tmp_path):
    arguments = ["predict", str(scans), str(tmp_path / "out"), "--bundle", str(trained_run), "--samples", "1"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 3 and "3 predicted" in result.stdout and "phantom_001" in result.stdout
    (scans / "phantom_001.nii.gz").unlink()
    assert CliRunner().invoke(app, arguments).exit_code == 0
