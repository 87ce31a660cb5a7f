"""The table of bad commands: what each says, and with which exit code. Nothing is trained or predicted for it."""

import json
import shutil
from pathlib import Path

import pytest
import torch

SMOKE = ("train", "mcdropout_unet3d", "--overlay", "smoke", "--mlflow", "false")


@pytest.fixture
def training(folder, tmp_path):
    """The arguments of a smoke training on the folder."""
    places = ("--output_dir", tmp_path / "run", "--runs_dir", tmp_path / "runs")
    return (*SMOKE, "--dataset_name", "folder", "--dataset_dir", folder, "--patch_size", "16,16,8", *places)


TRAININGS = {
    "more labels than scans": (("--labelled", 1000), ["labelled", "1000"]),
    "no label asked for": (("--labelled", 0), ["labelled"]),
    "labels below zero": (("--labelled", -3), ["labelled", "-3"]),
    "mistyped key": (("--lerning_rate", 0.1), ["lerning_rate", "Did you mean 'learning_rate'"]),
    "key of another bundle": (("--variant", "ic"), ["variant"]),
    "text for a number": (("--learning_rate", "fast"), ["learning_rate", "'fast'", "a number"]),
    "no epochs": (("--max_epochs", 0), ["max_epochs", "at least 1"]),
    "two numbers for three": (("--patch_size", "16,16"), ["patch_size", "2 numbers, expected 3"]),
    "mistyped data set": (("--dataset_name", "kist19"), ["kist19", "kits19"]),
    "window reversed": (("--window", "250,-100"), ["window", "low below high"]),
    "patch far larger than the scans": (("--patch_size", "[500,500,500]"), ["patch_size", "500", "16"]),
    "stride of nothing": (("--stride", "0,0,0"), ["stride", "at least 1"]),
    "samples below zero": (("--samples", -5), ["samples", "-5"]),
    "mistyped overlay": (("--overlay", "smok"), ["Did you mean 'smoke'"]),
}


@pytest.mark.parametrize("name", TRAININGS)
def test_training_is_refused_before_it_begins_and_ends_with_1(name, training, ended, tmp_path):
    arguments, words = TRAININGS[name]
    end = ended(*training, *arguments)
    assert end.code == 1 and "Traceback" not in end.text
    assert [word for word in words if word not in end.text] == [], end.text
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_output_that_is_a_file_is_refused(training, ended, tmp_path):
    (tmp_path / "file").touch()
    end = ended(*training, "--output_dir", tmp_path / "file")
    assert end.code == 1 and str(tmp_path / "file") in end.text and "Traceback" not in end.text


def test_output_that_cannot_be_written_is_refused(training, ended):
    end = ended(*training, "--output_dir", "/proc/nobody/run")
    assert end.code == 1 and "/proc/nobody" in end.text and "Traceback" not in end.text


def test_training_without_any_label_is_refused(training, folder, ended):
    shutil.rmtree(folder / "labels")
    end = ended(*training)
    assert end.code == 1 and "no label" in end.text


def test_training_into_a_finished_run_is_refused(trained_run, training, ended):
    end = ended(*training, "--output_dir", trained_run)
    assert end.code == 1 and str(trained_run) in end.text and "--resume true" in end.text


def test_resumed_training_with_other_data_is_refused(trained_run, training, ended):
    end = ended(*training, "--output_dir", trained_run, "--resume")
    assert end.code == 1 and "split" in end.text


PREDICTIONS = {
    "samples below zero": (("--samples", -5), 1, ["samples", "-5"]),
    "stride of nothing": (("--stride", "0,0,0"), 1, ["stride", "at least 1"]),
    "stride below zero": (("--stride=-8,8,8",), 1, ["stride", "at least 1"]),
    "two strides": (("--stride", "8,8"), 1, ["stride", "2 numbers, expected 3"]),
    "mistyped mode": (("--mode", "quick"), 1, ["quick", "fast"]),
    "shard beyond the last": (("--shard", "9/3"), 1, ["9/3", "i/n"]),
    "int8 that was not made": (("--backend", "int8"), 1, ["int8", "quantise"]),
    "DICOM of NIfTI": (("--dicom",), 3, ["DICOM"]),
    "mistyped option": (("--sampels", 5), 2, ["Did you mean --samples?"]),
}


@pytest.mark.parametrize("name", PREDICTIONS)
def test_prediction_is_refused_with_the_reason(name, trained_run, folder, ended, tmp_path):
    arguments, code, words = PREDICTIONS[name]
    scan = folder / "images" / "case_a.nii.gz"
    end = ended("predict", scan, tmp_path / "out", "--bundle", trained_run, *arguments)
    assert end.code == code and "Traceback" not in end.text
    assert [word for word in words if word not in end.text] == [], end.text


def test_output_among_the_scans_is_refused(trained_run, folder, ended):
    end = ended("predict", folder / "images", folder / "images", "--bundle", trained_run)
    assert end.code == 1 and "another folder" in end.text


def test_link_to_a_file_of_the_system_fails_alone_and_shows_nothing_of_it(trained_run, folder, ended, tmp_path):
    (folder / "images" / "case_z.nii.gz").symlink_to("/etc/hostname")
    end = ended("predict", folder / "images", tmp_path / "out", "--bundle", trained_run, "--samples", 1)
    assert end.code == 3 and "case_z" in end.text and "5 predicted" in end.text
    assert Path("/etc/hostname").read_text().strip() not in end.text


BUNDLES = {
    "no such folder": (shutil.rmtree, ["no such folder"]),
    "untrained": (lambda bundle: (bundle / "models" / "model.pt").unlink(), ["no trained weights"]),
    "weights of another network": (
        lambda bundle: torch.save({"model": {"x": torch.zeros(3)}}, bundle / "models" / "model.pt"),
        ["model.pt"],
    ),
}


@pytest.mark.parametrize("name", BUNDLES)
def test_bundle_that_cannot_predict_is_named(name, trained_run, folder, ended, tmp_path):
    spoil, words = BUNDLES[name]
    bundle = tmp_path / "bundle"
    shutil.copytree(trained_run / "bundle", bundle)
    spoil(bundle)
    end = ended("predict", folder / "images", tmp_path / "out", "--bundle", bundle)
    assert end.code == 1 and str(bundle) in end.text and "Traceback" not in end.text
    assert [word for word in words if word not in end.text] == [], end.text


OTHERS = {
    "run that there is not": (("report", "nothere"), 1, ["nothere"]),
    "budget that is no time": (("review", "RUN", "--budget", "soon"), 1, ["soon", "30min"]),
    "method that no run has": (("report", "RUN", "OTHER", "--against", "nobody"), 1, ["nobody"]),
    "numbers of samples below one": (("samples", "RUN", "--values", "0,-2"), 1, ["values"]),
    "label for everybody": (("label", "--studies", "SCANS", "--bundle", "RUN", "--host", "0.0.0.0"), 1, ["0.0.0.0"]),
    "page of no runs": (("ui", "--runs-dir", "nothere"), 1, ["nothere", "--runs_dir"]),
    "mistyped bundle": (("train", "gbld"), 1, ["Did you mean 'gbdl'"]),
    "mistyped command": (("predikt",), 2, ["Did you mean 'predict'?"]),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_commands_say_what_is_wrong(name, trained_run, folder, ended, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    arguments, code, words = OTHERS[name]
    stands_for = {"RUN": trained_run, "OTHER": tmp_path / "other", "SCANS": folder}
    shutil.copytree(trained_run, tmp_path / "other")
    facts = tmp_path / "other" / "run.json"
    facts.write_text(json.dumps({**json.loads(facts.read_text()), "seed": 1}))
    end = ended(*(stands_for.get(argument, argument) for argument in arguments))
    assert end.code == code and "Traceback" not in end.text
    assert [word for word in words if word not in end.text] == [], end.text
    assert not (tmp_path / "nothere").exists()
