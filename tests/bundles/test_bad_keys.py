"""Keys that are mistyped, or have a value of a wrong type or size, end every bundle's training before it begins."""

from pathlib import Path

import pytest

from medssl.bundle import run_bundle
from medssl.core.errors import ConfigError, error_behind

ROOT = Path(__file__).parents[2] / "bundles"
OF_SCANS = ("mcdropout_unet3d", "gbdl", "teacher_student")
ALL = (*OF_SCANS, "np_match", "np_semiseg")
CASES = [
    *((bundle, "lerning_rate", 0.1, "key 'lerning_rate' is unknown. Did you mean 'learning_rate'?") for bundle in ALL),
    *((bundle, "learning_rate", "fast", "learning_rate 'fast': expected a number") for bundle in ALL),
    *((bundle, "learning_rate", -0.1, "learning_rate -0.1: expected at least 0") for bundle in ALL),
    *((bundle, "max_epochs", 0, "max_epochs 0: expected at least 1") for bundle in ALL),
    *((bundle, "batch_size", 0, "batch_size 0: expected at least 1") for bundle in ALL),
    *((bundle, "debug", "perhaps", "debug 'perhaps': expected true or false") for bundle in ALL),
    *((bundle, "labelled", -3, "labelled -3") for bundle in ALL),
    *((bundle, "patch_size", "8,8", "patch_size 8,8: 2 numbers, expected 3 ([height, width") for bundle in OF_SCANS),
    *((bundle, "patch_size", "8,8,wide", "patch_size: expected whole numbers such as 8,8,8") for bundle in OF_SCANS),
    *((bundle, "patch_size", "8,8", "key 'patch_size' is unknown") for bundle in ("np_match", "np_semiseg")),
    *(
        (bundle, "window", (250, -100), "expected [low, high] in Hounsfield units, low below high")
        for bundle in OF_SCANS
    ),
    *((bundle, "window", (250, -100), "key 'window' is unknown") for bundle in ("np_match", "np_semiseg")),
    ("mcdropout_unet3d", "variant", "ic", "key 'variant' is unknown"),
    ("gbdl", "variant", "icc", "'icc' is unknown"),
    ("np_match", "variant", "ic", "variant 'ic' is unknown"),
    ("np_semiseg", "variant", "ic", "variant 'ic' is unknown"),
]


def refusal(bundle, run_id, keys):
    """The text of the error that a training with the smoke overlay ends with."""
    configs = ROOT / bundle / "configs"
    with pytest.raises((RuntimeError, ConfigError)) as caught:
        run_bundle(run_id, [configs / "train.json", configs / "smoke.json"], **keys)
    known = error_behind(caught.value)
    assert isinstance(known, ConfigError), caught.value
    return str(known)


@pytest.fixture
def data_of(phantom_dir, picture_dir, scene_dir):
    folders = {"np_match": picture_dir, "np_semiseg": scene_dir}

    def keys(bundle):
        name = "phantom" if bundle in OF_SCANS else "folder"
        labelled = 3 if bundle in OF_SCANS else 6
        folder = folders.get(bundle, phantom_dir)
        return {"dataset_name": name, "dataset_dir": str(folder), "labelled": labelled, "mlflow": False}

    return keys


@pytest.mark.parametrize(("bundle", "key", "value", "text"), CASES)
def test_a_key_that_nobody_can_mean_is_refused_and_nothing_is_written(bundle, key, value, text, data_of, tmp_path):
    keys = {**data_of(bundle), "output_dir": str(tmp_path / "run"), "runs_dir": str(tmp_path), key: value}
    assert text in refusal(bundle, "training", keys)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("bundle", ALL)
def test_a_mistyped_run_id_is_refused_with_those_there_are(bundle, data_of, tmp_path):
    text = refusal(bundle, "trainig", {**data_of(bundle), "output_dir": str(tmp_path / "run")})
    assert text.startswith("run id 'trainig' is unknown. Did you mean 'training'? There are: run, ")
    assert ("first_stage, second_stage" in text) is (bundle == "gbdl")


@pytest.mark.parametrize("bundle", ALL)
def test_a_folder_that_cannot_be_the_runs_is_refused_before_anything_is_read(bundle, data_of, tmp_path):
    file = tmp_path / "run"
    file.write_text("somebody's file")
    for output in (file, file / "deeper"):
        text = refusal(bundle, "training", {**data_of(bundle), "output_dir": str(output), "runs_dir": str(tmp_path)})
        assert text == f"{file}: is a file, expected the folder of the run. Choose another --output_dir."
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("bundle", OF_SCANS)
def test_a_patch_far_larger_than_the_scans_is_refused_with_both_sizes(bundle, data_of, tmp_path):
    keys = {**data_of(bundle), "output_dir": str(tmp_path / "run"), "patch_size": "500,64,32"}
    text = refusal(bundle, "training", keys)
    assert text.startswith("patch_size 500,64,32: the largest scan has 64,64,24 voxels after resizing.")
    assert text.endswith("Give a --patch_size of at most 128,64,32.")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("bundle", ["mcdropout_unet3d", "gbdl"])
def test_a_training_that_needs_more_memory_than_there_is_is_refused(bundle, data_of, tmp_path, monkeypatch):
    monkeypatch.setattr("medssl.core.memory.available_bytes", lambda device="cpu": 1_000_000)
    keys = {**data_of(bundle), "output_dir": str(tmp_path / "run"), "runs_dir": str(tmp_path)}
    text = refusal(bundle, "training", keys)
    assert "this training needs about" in text and "are free. Give a smaller --patch_size or --batch_size" in text
    assert not any(tmp_path.iterdir())
