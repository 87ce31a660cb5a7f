"""The whole loop with a real server: next, segment, submit, a power cut, train, next. Takes minutes."""

import shutil

import numpy as np
import pytest
from label_app.conftest import running_server

from medssl.bundle import run_bundle
from medssl.data.volumes import read_volume, write_nifti

MODEL = "mcdropout_unet3d"


def next_sample(server):
    return server.post("/activelearning/uncertain", json={}).json()


def submit(server, study, phantom_dir, folder):
    label = read_volume(phantom_dir / "labels" / f"{study}.nii.gz")
    write_nifti(folder / "label.nii.gz", label.array > 0, label.affine, np.uint8)
    with (folder / "label.nii.gz").open("rb") as file:
        response = server.put(f"/datastore/label?image={study}", files={"label": ("label.nii.gz", file)})
    assert response.status_code == 200


def queue_of(server):
    """The order in which the waiting studies would be offered, from what is stored."""
    objects = server.get("/datastore/?output=all").json()["objects"]
    waiting = {name: entry for name, entry in objects.items() if "final" not in entry["labels"]}
    scores = {name: entry["image"]["info"]["medssl"]["record"]["score"] for name, entry in waiting.items()}
    return sorted(scores, key=lambda name: (-scores[name], name))


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_review_survives_a_power_cut_and_the_model_learns(scans_to_review, label_bundle, phantom_dir, tmp_path):
    studies, log = tmp_path / "studies", tmp_path / "server.log"
    shutil.copytree(scans_to_review, studies)
    with running_server(studies, label_bundle, log, samples=2) as server:
        server.wait_until(lambda: next_sample(server).get("unscored") == 0, "scores of all studies")
        for _ in range(2):
            study = next_sample(server)["id"]
            assert server.post(f"/infer/{MODEL}?image={study}&output=json").json()["id"] == study
            submit(server, study, phantom_dir, tmp_path)
        offered, queue = next_sample(server), queue_of(server)
        reviewed = {file.name: file.read_bytes() for file in (studies / "labels" / "final").iterdir()}
        server.kill()

    with running_server(studies, label_bundle, log, samples=2) as server:
        again = next_sample(server)
        assert again["id"] == offered["id"] == queue[0] and again["score"] == offered["score"]
        assert queue_of(server) == queue and server.get("/info/").json()["datastore"]["completed"] == 2
        assert {file.name: file.read_bytes() for file in (studies / "labels" / "final").iterdir()} == reviewed

        assert server.post(f"/train/{MODEL}", json={"max_epochs": 1}).status_code == 200
        assert server.post(f"/train/{MODEL}", json={}).status_code == 429
        task = server.wait_until(lambda: done_training(server), "end of the training", 2000)
        assert task["status"] == "DONE", task
        outcome = server.get("/info/").json()["train_stats"][MODEL]
        better = outcome["dice_after"] >= outcome["dice_before"]
        assert outcome["status"] == ("swapped" if better else "kept") and len(outcome["held_out"]["reviewed"]) == 1
        assert (studies / ".medssl_label" / "trainings" / "mlflow.db").is_file() and outcome["mlflow"]["mlflow_run_id"]

        weights = again["medssl"]["made_by"]["weights"]
        server.wait_until(lambda: next_sample(server).get("unscored") == 0, "scores by the model in use")
        after = next_sample(server)
        assert after["id"] not in {name.removesuffix(".nii.gz") for name in reviewed}
        assert (after["medssl"]["made_by"]["weights"] != weights) == better
        assert "Traceback" not in log.read_text() and "phantom_0" not in log.read_text()


def done_training(server):
    task = server.get("/train/").json()
    return task if task["status"] in ("DONE", "ERROR") else None


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_posterior_network_of_gbdl_is_served_and_trained_on(bundles_dir, scans_to_review, phantom_dir, tmp_path):
    pytest.importorskip("monailabel", reason="needs pip install 'medssl[label]'")
    import medssl.label_app.shim.sitecustomize  # noqa: F401
    from medssl.label_app.datastore import StudyDatastore
    from medssl.label_app.model import ServedModel
    from medssl.label_app.recipe import find_recipe
    from medssl.label_app.studies import Studies
    from medssl.label_app.training import ReviewTraining
    from medssl.label_app.workspace import Workspace

    gbdl, shared = bundles_dir / "gbdl", {"dataset_name": "phantom", "dataset_dir": str(phantom_dir), "mlflow": False}
    sizes = {"labelled": 3, "validation": 2, "test": 3, "runs_dir": str(tmp_path), "output_dir": str(tmp_path / "gbdl")}
    configs = [str(gbdl / "configs" / name) for name in ("train.json", "smoke.json")]
    run_bundle(run_id="training", config_files=configs, **shared, **sizes)

    workspace = Workspace(tmp_path / "workspace")
    workspace.prepare()
    model = ServedModel(workspace, tmp_path / "gbdl", samples=2)
    shutil.copytree(scans_to_review, tmp_path / "studies")
    store = StudyDatastore(str(tmp_path / "studies"), model.structures)
    studies = Studies(store, model)
    for study in ("phantom_000", "phantom_001"):
        store.save_label(study, str(studies.result(study).segmentation), "final", {})
    outcome = ReviewTraining(model, find_recipe(model.given))({}, store)
    assert outcome["status"] == ("swapped" if outcome["dice_after"] >= outcome["dice_before"] else "kept")
    assert (model.bundle == model.given) == (outcome["status"] == "kept")
    assert outcome["trained_on"]["unlabelled"] >= 3 and model.name == "gbdl"
