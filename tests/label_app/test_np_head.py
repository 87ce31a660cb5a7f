"""The neural-process head, trained on slices, is served and trained on as the 3-D networks are."""

import json
import shutil

import numpy as np
import pytest

pytest.importorskip("monailabel", reason="needs pip install 'medssl[label]'")
from label_app.conftest import require_monailabel, running_server
from label_app.test_review_loop import done_training, next_sample, submit
from label_app.test_server import infer, multipart, nifti

import medssl.label_app.shim.sitecustomize  # noqa: F401
from medssl.bundle.networks import load_fitting_weights
from medssl.data.volumes import read_volume
from medssl.inference import load_predictor
from medssl.label_app.datastore import StudyDatastore
from medssl.label_app.launch import newest_run
from medssl.label_app.model import ServedModel, trained_bundle
from medssl.label_app.recipe import find_recipe
from medssl.label_app.studies import Studies
from medssl.label_app.workspace import Workspace
from natural_image_ext.networks import build_segmentation

MODEL = "np_semiseg"


@pytest.fixture
def model(slice_run, tmp_path):
    workspace = Workspace(tmp_path / "workspace")
    workspace.prepare()
    return ServedModel(workspace, slice_run, samples=2)


def test_run_on_slices_is_found_and_accepted(slice_run, tmp_path):
    assert trained_bundle(slice_run) == slice_run / "bundle"
    shutil.copytree(slice_run, tmp_path / "runs" / "mine")
    assert newest_run(tmp_path / "runs") == tmp_path / "runs" / "mine"


def test_study_gets_its_segmentation_and_record(model, scans_to_review, tmp_path):
    shutil.copytree(scans_to_review, tmp_path / "studies")
    assert model.name == MODEL and model.structures == {1: "kidney"}
    studies = Studies(StudyDatastore(str(tmp_path / "studies"), model.structures), model)
    found = studies.result("phantom_000")
    image = str(tmp_path / "studies" / "phantom_000.nii.gz")
    expected = load_predictor(model.given, samples=2)({"id": "phantom_000", "image": image})
    assert np.array_equal(read_volume(found.segmentation).array, expected.segmentation)
    assert found.record["structures"]["kidney"]["class"] == 1 and studies.record("phantom_000") == found.record


def test_recipe_names_the_overlay_and_what_the_run_changed_of_both_files(slice_run):
    recipe = find_recipe(slice_run / "bundle")
    assert [file.name for file in recipe.configs] == ["train.json", "scans.json"] and recipe.run == slice_run
    assert recipe.keys["encoder"] == "resnet18" and recipe.keys["max_epochs"] == 2 and recipe.keys["bank_size"] == 16
    assert not any("::" in key for key in recipe.keys), "parts of scans.json are in scans.json"
    facts = json.loads((slice_run / "bundle" / "configs" / "inference.json").read_text())["data_facts"]
    overlay = recipe.overlay(facts, slice_run / "bundle" / "models" / "model.pt")
    assert overlay["patch_size"] == [32, 32, 1] and overlay["start_from"].endswith("model.pt")


def test_recipe_of_a_run_on_scenes_or_3_d_patches_needs_no_overlay(trained_run):
    assert [file.name for file in find_recipe(trained_run / "bundle").configs] == ["train.json"]


def test_network_of_a_training_begins_with_served_weights_and_banks(slice_run):
    served = load_predictor(slice_run).network
    network = build_segmentation(**served.arguments)
    report = load_fitting_weights(network, slice_run / "bundle")
    assert not report.left and not report.unused
    assert (network.head.latent_banks.counts > 1).any()
    assert np.array_equal(network.head.latent_banks.rows, served.head.latent_banks.rows)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_server_segments_offers_and_trains_the_neural_process(slice_run, scans_to_review, phantom_dir, tmp_path):
    require_monailabel()
    studies, log = tmp_path / "studies", tmp_path / "server.log"
    shutil.copytree(scans_to_review, studies)
    with running_server(studies, slice_run, log, samples=2) as server:
        record, content = multipart(infer(server, MODEL))
        expected = load_predictor(slice_run, samples=2)(
            {"id": "phantom_000", "image": str(studies / "phantom_000.nii.gz")}
        )
        assert np.array_equal(np.asarray(nifti(content).dataobj), expected.segmentation)
        assert record["label_names"] == {"kidney": 1} and record["score"] >= 0
        for _ in range(2):
            submit(server, next_sample(server)["id"], phantom_dir, tmp_path)
        assert server.post(f"/train/{MODEL}", json={"max_epochs": 1}).status_code == 200
        task = server.wait_until(lambda: done_training(server), "end of the training", 2000)
        assert task["status"] == "DONE", task
        outcome = server.get("/info/").json()["train_stats"][MODEL]
        better = outcome["dice_after"] >= outcome["dice_before"]
        assert outcome["status"] == ("swapped" if better else "kept") and len(outcome["held_out"]["reviewed"]) == 1
        log_of_training = studies / ".medssl_label" / "trainings" / "0001" / "run" / "run.json"
        assert json.loads(log_of_training.read_text())["config"]["overlay"] == "scans"
        assert "Traceback" not in log.read_text()
