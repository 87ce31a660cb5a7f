"""A label server on a real series: a hippocampus model segments it, a correction becomes a DICOM SEG file."""

import numpy as np
import pydicom
import pytest
from label_app.conftest import require_monailabel, running_server

from medssl.bundle import run_bundle
from medssl.data.dicom_seg import open_segmentation, read_segmentation
from medssl.data.volumes import read_volume, write_nifti
from medssl.data.voxel_grid import reordered

pytestmark = [pytest.mark.realdata, pytest.mark.slow, pytest.mark.timeout(3000)]

MODEL = "mcdropout_unet3d"


@pytest.fixture
def hippocampus_run(shared_data, bundle_dir, tmp_path):
    """A run of a few steps on real hippocampi: it knows the structures, not where they are."""
    require_monailabel()
    if not (shared_data / "hippocampus").is_dir():
        pytest.skip(f"{shared_data / 'hippocampus'} is not there")
    configs = [str(bundle_dir / "configs" / name) for name in ("train.json", "smoke.json")]
    data = {"dataset_name": "hippocampus", "dataset_dir": str(shared_data / "hippocampus"), "mlflow": False}
    sizes = {"labelled": 2, "unlabelled": 1, "validation": 1, "test": 1, "max_epochs": 1}
    keys = {"bundle_root": str(bundle_dir), "output_dir": str(tmp_path / "run"), "runs_dir": str(tmp_path)}
    run_bundle(run_id="training", config_files=configs, **keys, **data, **sizes)
    return tmp_path / "run"


@pytest.mark.parametrize("folder", ["dicom/mr_hippocampus"], indirect=True)
def test_real_series_is_segmented_and_its_correction_becomes_dicom_seg(series, hippocampus_run, tmp_path):
    workspace, log = tmp_path / "workspace", tmp_path / "server.log"
    with running_server(series, hippocampus_run, log, samples=2, workspace=workspace) as server:
        study = server.post("/activelearning/uncertain", json={}).json()["id"]
        answer = server.post(f"/infer/{MODEL}", params={"image": study, "output": "image"})
        assert answer.status_code == 200, answer.text
        (tmp_path / "answer.nii.gz").write_bytes(answer.content)
        predicted, scan = read_volume(tmp_path / "answer.nii.gz"), read_volume(series)
        assert predicted.shape == scan.shape and np.allclose(predicted.affine, scan.affine, atol=1e-3)

        corrected = predicted.array.astype(np.uint8)
        corrected[10:20, 10:20, 3:9], corrected[20:30, 10:20, 3:9] = 1, 2
        write_nifti(tmp_path / "label.nii.gz", corrected, predicted.affine, np.uint8)
        with (tmp_path / "label.nii.gz").open("rb") as file:
            answer = server.put(f"/datastore/label?image={study}", files={"label": ("label.nii.gz", file)})
        assert answer.status_code == 200, answer.text
        assert server.post("/activelearning/uncertain", json={}).json() == {}  # nothing is left to review

    written = workspace / "series" / "dicom_seg" / f"{study}.dcm"
    assert np.array_equal(reordered(read_segmentation(written), predicted).array, corrected)
    assert {name.casefold() for name in open_segmentation(written).structures.values()} == {"anterior", "posterior"}
    slices = [pydicom.dcmread(file, stop_before_pixels=True) for file in series.iterdir()]
    assert pydicom.dcmread(written).StudyInstanceUID == slices[0].StudyInstanceUID
    secrets = [str(slices[0].get(name, "")) for name in ("PatientName", "PatientID", "PatientBirthDate")]
    told = log.read_text() + (workspace / "logs" / "app.log").read_text()
    assert "Traceback" not in told and not any(secret in told for secret in secrets if secret)
