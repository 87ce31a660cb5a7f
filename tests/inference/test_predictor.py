"""Predictions come back on the scan's own grid, in any orientation, the same in any order."""

import itertools

import nibabel as nib
import numpy as np
import pytest
import torch
from nibabel.orientations import axcodes2ornt, io_orientation, ornt_transform
from torch import nn

from medssl.core.errors import CheckpointError, ConfigError
from medssl.data import Pipeline, facts_from_json
from medssl.data.volumes import write_nifti
from medssl.engine import save_tensors
from medssl.inference import MCDropoutInferer, Predictor, load_predictor
from medssl.networks import MCDropoutUNet3D

FACTS = {
    "name": "folder",
    "window": [-100, 250],
    "slice_size": None,
    "region_size": None,
    "patch_size": [16, 16, 8],
    "label_map": {"1": 1},
    "structures": {"1": "bright"},
}


class Threshold(nn.Module):
    """Calls bright voxels foreground: what comes out shows where voxels went."""

    def forward(self, x):
        return torch.cat([torch.zeros_like(x), x * 20], dim=1)


def predictor(**changes):
    facts = facts_from_json(**{**FACTS, **changes})
    return Predictor(Threshold(), Pipeline(facts), MCDropoutInferer((16, 16, 8), (16, 16, 8), samples=1))


@pytest.fixture
def scan():
    rng = np.random.default_rng(0)
    return np.where(rng.random((12, 20, 9)) < 0.3, 200, 0).astype(np.int16)


@pytest.mark.parametrize("codes", [*itertools.product("RL", "AP", "SI"), ("S", "P", "L"), ("A", "I", "R")])
def test_segmentation_lies_on_the_source_grid_in_any_orientation(scan, codes, tmp_path):
    affine = np.diag([1.5, 1.0, 2.0, 1.0])
    affine[:3, 3] = (10, -20, 30)
    image = nib.Nifti1Image(scan, affine)
    turned = image.as_reoriented(ornt_transform(io_orientation(affine), axcodes2ornt(codes)))
    write_nifti(tmp_path / "scan.nii.gz", np.asarray(turned.dataobj), turned.affine, np.int16)
    found = predictor()({"id": "scan", "image": str(tmp_path / "scan.nii.gz")})
    assert np.array_equal(found.segmentation, np.asarray(turned.dataobj) > 100)
    assert np.allclose(found.affine, turned.affine)


def test_training_region_does_not_limit_what_is_predicted(tmp_path):
    image = np.zeros((40, 40, 8), np.int16)
    image[12:28, 12:28] = 50
    image[0:3, 0:3] = 240  # bright, in the corner, outside of the region that training patches come from
    write_nifti(tmp_path / "scan.nii.gz", image, np.eye(4), np.int16)
    found = predictor(region_size=[16, 16])({"id": "scan", "image": str(tmp_path / "scan.nii.gz")})
    assert (found.segmentation[0:3, 0:3] == 1).all() and np.allclose(found.probs.sum(0), 1, atol=1e-5)


def test_outside_of_a_paper_crop_is_background(tmp_path):
    image, label = np.full((40, 40, 8), 240, np.int16), np.zeros((40, 40, 8), np.uint8)
    label[12:20, 12:20, 2:6] = 1
    write_nifti(tmp_path / "scan.nii.gz", image + np.arange(40)[:, None, None], np.eye(4), np.int16)
    write_nifti(tmp_path / "label.nii.gz", label, np.eye(4), np.uint8)
    pipeline = Pipeline(facts_from_json(**{**FACTS, "region_size": [16, 16]}), paper_crop=True)
    cropped = Predictor(Threshold(), pipeline, MCDropoutInferer((16, 16, 8), (16, 16, 8), samples=1))
    found = cropped({"id": "scan", "image": str(tmp_path / "scan.nii.gz"), "label": str(tmp_path / "label.nii.gz")})
    assert found.segmentation.sum() == 16 * 16 * 8 and found.segmentation[0, 0].sum() == 0
    assert np.allclose(found.probs.sum(0), 1, atol=1e-5)


def test_resized_slices_come_back_in_the_scans_size(tmp_path):
    image = np.full((40, 52, 8), -100, np.int16)
    image[10:30, 12:40, 2:6] = 250
    write_nifti(tmp_path / "scan.nii.gz", image, np.eye(4), np.int16)
    found = predictor(slice_size=[32, 32])({"id": "scan", "image": str(tmp_path / "scan.nii.gz")})
    truth = image > 0
    overlap = 2 * (found.segmentation[truth] == 1).sum() / (found.segmentation.sum() + truth.sum())
    assert found.segmentation.shape == image.shape and overlap > 0.95


def test_the_same_case_gives_the_same_result_in_any_order(scan, tmp_path):
    for name in ("a", "b"):
        write_nifti(tmp_path / f"{name}.nii.gz", scan, np.eye(4), np.int16)
    cases = [{"id": name, "image": str(tmp_path / f"{name}.nii.gz")} for name in ("a", "b")]
    torch.manual_seed(0)
    network = MCDropoutUNet3D(1, 2, widths=(4, 8))
    sampling = Predictor(network, Pipeline(facts_from_json(**FACTS)), MCDropoutInferer((16, 16, 8), (8, 8, 4), 2))
    forward = {case["id"]: sampling(case).probs for case in cases}
    backward = {case["id"]: sampling(case).probs for case in cases[::-1]}
    assert all(np.array_equal(forward[name], backward[name]) for name in forward)
    assert not np.array_equal(forward["a"], forward["b"])  # each case draws its own samples


def test_weights_of_another_network_are_refused(tmp_path):
    save_tensors(MCDropoutUNet3D(1, 2, widths=(4, 16)).state_dict(), tmp_path / "model.pt")
    with pytest.raises(CheckpointError, match=r"model\.pt"):
        Predictor(
            MCDropoutUNet3D(1, 2, widths=(4, 8)),
            Pipeline(facts_from_json(**FACTS)),
            MCDropoutInferer((16, 16, 8), (8, 8, 4)),
            checkpoint=tmp_path / "model.pt",
        )


def test_digest_names_the_weights():
    torch.manual_seed(0)
    network = MCDropoutUNet3D(1, 2, widths=(4, 8))
    found = Predictor(network, Pipeline(facts_from_json(**FACTS)), MCDropoutInferer((16, 16, 8), (8, 8, 4)))
    before = found.weights_digest()
    assert before == found.weights_digest()
    with torch.no_grad():
        network.classifier.bias[0] += 1e-3
    assert found.weights_digest() != before


def test_bundle_without_weights_and_folder_without_bundle_are_refused(bundle_dir, tmp_path):
    with pytest.raises(CheckpointError, match=r"models/model\.pt"):
        load_predictor(bundle_dir)
    with pytest.raises(ConfigError, match=r"inference\.json"):
        load_predictor(tmp_path)


def test_trained_bundle_predicts_as_in_its_evaluation(trained_run, phantom_dir):
    found = load_predictor(trained_run)
    case = next((trained_run / "evaluation" / "predictions").glob("*_seg.nii.gz")).name.removesuffix("_seg.nii.gz")
    prediction = found({"id": case, "image": str(phantom_dir / "images" / f"{case}.nii.gz")})
    stored = nib.load(trained_run / "evaluation" / "predictions" / f"{case}_seg.nii.gz")
    assert np.array_equal(prediction.segmentation, np.asarray(stored.dataobj))
