"""The whole loop on an archive: next, segment, submit, a power cut, train, next, with Orthanc and a real server."""

import json

import numpy as np
import psutil
import pytest
from label_app.conftest import running_server
from label_app.dicom_studies import PATIENT, write_study
from label_app.orthanc import require_orthanc, running_orthanc

from medssl.data.volumes import read_volume, write_nifti

MODEL = "mcdropout_unet3d"


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_model_learns_from_labels_of_the_archive_and_another_study_is_offered(label_bundle, tmp_path):
    require_orthanc()
    studies = {study.series_uid: study for study in (write_study(tmp_path / "dicom", index) for index in (20, 21, 22))}
    options = {"samples": 2, "search_filter": "CT", "workspace": tmp_path / "workspace"}
    log = tmp_path / "server.log"
    with running_orthanc(tmp_path / "orthanc") as orthanc:
        for study in studies.values():
            orthanc.store(study.folder)
        with running_server(orthanc.dicomweb_url, label_bundle, log, **options) as server:
            reviewed = [review(server, studies, tmp_path) for _ in range(2)]
            assert len(set(reviewed)) == len(orthanc.series("SEG")) == 2
            offered = scored_sample(server)
            server.kill()

        with running_server(orthanc.dicomweb_url, label_bundle, log, **options) as server:
            again = scored_sample(server)
            assert (again["id"], again["score"]) == (offered["id"], offered["score"])
            assert server.get("/info/").json()["datastore"]["completed"] == 2 == len(orthanc.series("SEG"))
            for name in reviewed:
                assert np.array_equal(stored_label(server, name, tmp_path), studies[name].label.array > 0)

            assert server.post(f"/train/{MODEL}", json={"max_epochs": 1}).status_code == 200
            task = server.wait_until(lambda: ended(server), "end of the training", 2000)
            assert task["status"] == "DONE", task
            outcome = json.loads((tmp_path / "workspace" / "trainings" / "0001" / "outcome.json").read_text())
            assert outcome["status"] in ("swapped", "kept") and len(outcome["held_out"]["reviewed"]) == 1
            assert outcome["trained_on"]["labelled"] >= 1 and outcome["trained_on"]["unlabelled"] >= 1

            assert next_sample(server)["id"] == (studies.keys() - set(reviewed)).pop()
            no_training_outlives(server)
    told = log.read_text()
    assert "Traceback" not in told and not any(value in told for value in ("Secret", *PATIENT.values()))


def review(server, studies, folder):
    """Look at what the model says of the study it is least sure of, and submit what is there to see; its id."""
    study = studies[next_sample(server)["id"]]
    answer = server.post(f"/infer/{MODEL}", params={"image": study.series_uid, "output": "image"})
    assert answer.status_code == 200, answer.text
    (folder / "answer.nii.gz").write_bytes(answer.content)
    assert read_volume(folder / "answer.nii.gz").shape == study.scan.shape
    return submit(server, study, folder)


def scored_sample(server):
    return server.wait_until(lambda: (found := next_sample(server)).get("unscored") == 0 and found, "a score")


def stored_label(server, name, folder):
    """The voxels of the reviewed label that the server has of a study, in the order of its scan."""
    answer = server.get("/datastore/label", params={"label": name, "tag": "final"})
    assert answer.status_code == 200, answer.text
    (folder / "stored.nii.gz").write_bytes(answer.content)
    return read_volume(folder / "stored.nii.gz").array > 0


def next_sample(server):
    answer = server.post("/activelearning/uncertain", json={})
    assert answer.status_code == 200, answer.text
    return answer.json()


def submit(server, study, folder):
    """Submit what is there to see in the study; its id."""
    write_nifti(folder / "label.nii.gz", study.label.array > 0, study.label.affine, np.uint8)
    with (folder / "label.nii.gz").open("rb") as file:
        path = f"/datastore/label?image={study.series_uid}"
        assert server.put(path, files={"label": ("label.nii.gz", file)}).status_code == 200
    return study.series_uid


def ended(server):
    task = server.get("/train/").json()
    return task if task["status"] in ("DONE", "ERROR") else None


def no_training_outlives(server):
    """End the server in the middle of a training; fails if a process goes on."""
    assert server.post(f"/train/{MODEL}", json={"max_epochs": 1000}).status_code == 200
    below = server.wait_until(psutil.Process(server.process.pid).children, "the process of the training")
    server.process.terminate()
    server.process.wait(120)
    assert psutil.wait_procs(below, timeout=30)[1] == []
