"""Any network of MONAI by its name: trained, exported and predicted by a bundle, or refused before training."""

import json

import nibabel
import numpy as np
import pytest

from medssl.core.errors import ConfigError, error_behind
from medssl.inference import load_predictor
from medssl.report import load_run

VNET = {
    "_target_": "VNet",
    "spatial_dims": 3,
    "in_channels": 1,
    "out_channels": "@num_classes",
    "dropout_prob_up": [0.5, 0.5],
}
SEGRESNET = {"_target_": "SegResNet", "spatial_dims": 3, "init_filters": 8, "in_channels": 1,
             "out_channels": "@num_classes", "blocks_down": [1, 1], "blocks_up": [1]}  # fmt: skip
SMALL = {"patch_size": [16, 16, 16], "stride": [64, 64, 24], "max_epochs": 1, "steps_per_epoch": 1, "test": 1,
         "validation": 1}  # fmt: skip


@pytest.fixture(scope="module")
def vnet_run(train_smoke, tmp_path_factory):
    folder = tmp_path_factory.mktemp("vnet") / "run"
    return train_smoke(folder, network_def=VNET, **{**SMALL, "window_size": [32, 32, 16], "stride": [32, 32, 16]})


def stored(run, name):
    [file] = sorted((run / "evaluation" / "predictions").glob(f"*_{name}.nii.gz"))
    return file


def test_vnet_is_trained_and_exported_by_its_name_and_plain_arguments(vnet_run):
    run = load_run(vnet_run)
    assert run.status == "finished" and len(run.per_case) == 1
    definition = json.loads((vnet_run / "bundle" / "configs" / "inference.json").read_text())["network_def"]
    assert definition["_target_"].endswith("VNet") and definition["out_channels"] == 2


def predicted(run, phantoms, **overrides):
    """What the run's bundle says of the scan that it was tested with."""
    case = stored(run, "seg").name.removesuffix("_seg.nii.gz")
    predictor = load_predictor(run / "bundle", **overrides)
    return predictor({"id": case, "image": str(phantoms / "images" / f"{case}.nii.gz")})


def test_vnet_predicts_from_its_bundle_what_the_evaluation_stored(vnet_run, phantom_dir):
    prediction = predicted(vnet_run, phantom_dir)
    assert np.array_equal(np.asarray(nibabel.load(stored(vnet_run, "seg")).dataobj), prediction.segmentation)
    entropy = np.asarray(nibabel.load(stored(vnet_run, "entropy")).dataobj)
    assert np.allclose(entropy, prediction.entropy, atol=1e-6)


def test_vnets_dropout_is_drawn_in_samples(vnet_run, phantom_dir):
    sampled = np.asarray(nibabel.load(stored(vnet_run, "entropy")).dataobj)
    assert not np.allclose(predicted(vnet_run, phantom_dir, samples=0).entropy, sampled, atol=1e-6)


def test_choices_to_train_vnet_on_hold_the_whole_network(vnet_run):
    pytest.importorskip("monailabel", reason="needs pip install 'medssl[label]'")
    from medssl.label_app.recipe import find_recipe

    keys = find_recipe(vnet_run / "bundle").keys
    assert keys["network_def"] == VNET
    assert not any(key.startswith("network_def::") for key in keys)


def test_network_without_dropout_is_refused_before_training_where_samples_are_asked_for(train_smoke, tmp_path):
    with pytest.raises(RuntimeError) as caught:
        train_smoke(tmp_path / "run", network_def=SEGRESNET, **SMALL)
    error = error_behind(caught.value)
    assert isinstance(error, ConfigError)
    assert "network SegResNet has no dropout layer" in str(error) and "--samples 0" in str(error)
    assert not (tmp_path / "run").exists()


def test_network_without_dropout_is_trained_without_samples(train_smoke, tmp_path):
    run = train_smoke(tmp_path / "run", network_def=SEGRESNET, samples=0, **{**SMALL, "window_size": [32, 32, 24]})
    assert load_run(run).settings["samples"] == 0 and len(load_run(run).per_case) == 1


def test_network_that_cannot_take_the_patches_is_refused_before_training(train_smoke, tmp_path):
    with pytest.raises(RuntimeError) as caught:
        train_smoke(tmp_path / "run", network_def=VNET, **{**SMALL, "patch_size": [16, 16, 6]})
    assert isinstance(error_behind(caught.value), ConfigError) and "VNet" in str(error_behind(caught.value))
    assert not (tmp_path / "run").exists()
