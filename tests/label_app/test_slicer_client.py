"""A review as 3D Slicer makes it: with MONAI Label's own client, the class that its extension for Slicer calls."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import requests
from label_app.conftest import running_server
from label_app.dicom_studies import PATIENT, write_study

from medssl.data.dicom_seg import read_segmentation
from medssl.data.volumes import read_volume, write_nifti
from medssl.data.voxel_grid import Volume, reordered

MODEL = "mcdropout_unet3d"


@dataclass(frozen=True)
class Served:
    """A folder of studies: of every study, by its id, the scan and the label that a reviewer gives it."""

    folder: Path
    truth: dict[str, tuple[Volume, Volume]]


@pytest.fixture
def scans(scans_to_review, phantom_dir, tmp_path):
    shutil.copytree(scans_to_review, tmp_path / "studies")
    files = {file.name.removesuffix(".nii.gz"): file for file in (tmp_path / "studies").iterdir()}
    labels = {name: read_volume(phantom_dir / "labels" / file.name) for name, file in files.items()}
    return Served(tmp_path / "studies", {name: (read_volume(file), labels[name]) for name, file in files.items()})


@pytest.fixture
def series(label_bundle, tmp_path):
    import medssl.label_app.shim.sitecustomize  # noqa: F401
    from medssl.label_app.series_map import series_id

    studies = [write_study(tmp_path / "studies", index, coronal=index == 21) for index in range(20, 25)]
    truth = {series_id(study.series_uid): (read_volume(study.folder), study.label) for study in studies}
    (tmp_path / "studies" / "study_24" / "007.dcm").unlink()
    return Served(tmp_path / "studies", truth)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("kind", ["scans", "series"])
def test_slicers_client_goes_through_a_review_and_a_training(kind, request, label_bundle, tmp_path):
    from monailabel.client import MONAILabelClient

    served, slicer = request.getfixturevalue(kind), tmp_path / "slicer"
    slicer.mkdir()
    with running_server(served.folder, label_bundle, tmp_path / "server.log", samples=2) as server:
        client = MONAILabelClient(server.url, tmpdir=str(slicer), client_id="user-1")
        info = client.info()
        assert info["models"][MODEL]["labels"] == {"kidney": 1} and MODEL in info["trainers"]
        assert info["datastore"]["total"] == 5 and next(iter(info["strategies"])) == "uncertain"
        server.wait_until(lambda: client.next_sample("uncertain", {}).get("unscored") == 0, "scores")

        reviewed = []
        for _ in range(2):
            sample = client.next_sample("uncertain", {})
            assert sample["id"] not in reviewed and Path(sample["path"]).is_file()
            scan, label = served.truth[sample["id"]]
            shown = downloaded_scan(server, sample["id"], slicer)
            assert np.array_equal(shown.array, scan.array) and np.allclose(shown.affine, scan.affine, atol=1e-4)
            file, params = client.infer(MODEL, sample["id"], {})
            found = read_volume(file)
            assert found.shape == shown.shape and params["label_names"] == {"kidney": 1}
            assert params["structures"]["kidney"]["mean_entropy_bits"] >= 0 and params["uncertain_slices"]
            bands = read_volume(client.infer(f"{MODEL}_uncertainty", sample["id"], {})[0])
            assert bands.array.any() and bands.shape == shown.shape
            corrected = reordered(label, shown)
            write_nifti(slicer / "tmp1.nii.gz", (corrected.array > 0) * 1, shown.affine, np.uint8)
            told = {"label_info": [{"name": "kidney", "idx": 1}]}
            assert client.save_label(sample["id"], str(slicer / "tmp1.nii.gz"), params=told)["label"] == sample["id"]
            stored = read_volume(client.download_label(sample["id"], "final"))
            assert np.array_equal(stored.array, corrected.array > 0)
            reviewed.append(sample["id"])
        assert client.info()["datastore"]["completed"] == 2
        if kind == "series":
            check_series(server, served, reviewed, tmp_path)

        own_scan = served.truth[reviewed[0]][0]  # one that is open in the viewer, and no study
        write_nifti(slicer / "own.nii.gz", own_scan.array, own_scan.affine, np.float32)
        session = client.create_session(str(slicer / "own.nii.gz"))["session_id"]
        file, _ = client.infer(MODEL, "own", {}, session_id=session)
        assert read_volume(file).shape == own_scan.shape
        client.remove_session(session)

        assert client.train_start(MODEL, {"max_epochs": 1})["status"] != "ERROR"
        server.wait_until(lambda: client.train_status(check_if_running=True), "the training", 60)
        server.wait_until(lambda: not client.train_status(check_if_running=True), "end of the training", 2000)
        assert client.train_status()["status"] == "DONE", client.train_status()
        outcome = client.info()["train_stats"][MODEL]
        assert outcome["status"] in ("swapped", "kept") and set(outcome["held_out"]["reviewed"]) <= set(reviewed)
        after = client.next_sample("uncertain", {})
        assert after["id"] in served.truth and after["id"] not in reviewed
        log = server.log.read_text()
        assert "Traceback" not in log and not [value for value in PATIENT.values() if value in log]


def check_series(server, served, reviewed, folder):
    """What is more to a folder of series: DICOM SEG in and out, and a series with a gap that stops nobody."""
    names = '{"label_info": [{"name": "kidney", "idx": 1}]}'
    answer = server.post(f"/infer/{MODEL}?image={reviewed[0]}&output=dicom_seg", data={"params": names})
    assert answer.status_code == 200, answer.text
    (folder / "answer.dcm").write_bytes(answer.content)
    answer = server.post(f"/infer/{MODEL}?image={reviewed[0]}&output=image")
    (folder / "answer.nii.gz").write_bytes(answer.content)
    assert np.array_equal(read_segmentation(folder / "answer.dcm").array, read_volume(folder / "answer.nii.gz").array)
    workspace = served.folder / ".medssl_label"
    for name in reviewed:
        stored = read_segmentation(workspace / "series" / "dicom_seg" / f"{name}.dcm")
        assert np.array_equal(stored.array, reordered(served.truth[name][1], stored).array > 0)
    (bad,) = set(served.truth) - {path.name.removesuffix(".nii.gz") for path in workspace.glob("series/*.nii.gz")}
    assert f"{bad} cannot be served" in server.log.read_text()
    assert "missing slices" in (workspace / "series" / "problems.json").read_text()
    assert server.get(f"/datastore/image?image={bad}").status_code == 422


def downloaded_scan(server, study, folder):
    """The scan as Slicer fetches it from another machine."""
    answer = requests.get(f"{server.url}/datastore/image?image={study}", timeout=300)
    assert answer.status_code == 200
    (folder / "scan.nii.gz").write_bytes(answer.content)
    return read_volume(folder / "scan.nii.gz")
