"""The review of studies in a DICOMweb archive: Orthanc, and MONAI Label's server with our app."""

import json

import numpy as np
import pydicom
import pytest
from label_app.archive_server import same_grid
from label_app.dicom_studies import PATIENT

from medssl.data.dicom_seg import open_segmentation, read_segmentation
from medssl.data.volumes import read_volume, write_nifti
from medssl.data.voxel_grid import Volume


@pytest.fixture(scope="module")
def offered(archive_server):
    """The study that is offered first."""
    archive_server.wait_for_scores()
    return archive_server.studies[archive_server.next_sample()]


@pytest.fixture(scope="module")
def corrected(offered):
    """What the reviewer of that study submits: the phantom's own label."""
    return Volume((offered.label.array > 0).astype(np.uint8), offered.label.affine)


@pytest.fixture(scope="module")
def submitted(archive_server, offered, corrected, tmp_path_factory):
    """The DICOM SEG file that the archive has after the reviewer has submitted."""
    folder = tmp_path_factory.mktemp("submitted")
    write_nifti(folder / "label.nii.gz", corrected.array, corrected.affine, np.uint8)
    assert archive_server.orthanc.series("SEG") == []
    answer = archive_server.server.put(
        "/datastore/label",
        params={"image": offered.series_uid},
        data={"params": json.dumps({"label_info": [{"name": "kidney", "idx": 1}]})},
        files={"label": ("label.nii.gz", (folder / "label.nii.gz").read_bytes())},
    )
    assert answer.status_code == 200, answer.text
    (series,) = archive_server.orthanc.series("SEG")
    (file,) = archive_server.orthanc.fetch(series, folder / "archive")
    return file


def test_all_series_of_the_archive_are_studies(archive_server):
    content = archive_server.server.get("/datastore/", params={"output": "all"}).json()
    assert archive_server.server.get("/info/").json()["datastore"]["total"] == len(archive_server.studies) == 3
    assert set(content["objects"]) <= set(archive_server.studies)


def test_the_study_with_the_highest_score_is_offered_first(archive_server, offered):
    scores = {
        uid: archive_server.server.post(
            f"/infer/{archive_server.model}", params={"image": uid, "output": "json"}
        ).json()["score"]
        for uid in archive_server.studies
    }
    assert offered.series_uid == max(scores, key=scores.get)


@pytest.mark.parametrize("place", [0, 1], ids=["axial", "coronal"])
def test_a_prediction_comes_as_dicom_seg_voxel_for_voxel(archive_server, place, tmp_path):
    study = list(archive_server.studies.values())[place]
    answer = archive_server.server.post(
        f"/infer/{archive_server.model}",
        params={"image": study.series_uid, "output": "dicom_seg"},
        data={"params": json.dumps({"label_info": [{"name": "kidney", "idx": 1}]})},
    )
    assert answer.status_code == 200, answer.text
    (tmp_path / "seg.dcm").write_bytes(answer.content)
    found = read_segmentation(tmp_path / "seg.dcm")
    expected = archive_server.segmentation(study.series_uid, archive_server.model, tmp_path)
    assert expected.array.any()
    assert same_grid(found, read_volume(study.folder)) and same_grid(found, expected)
    assert np.array_equal(found.array, expected.array)


def test_a_submitted_label_is_in_the_archive_voxel_for_voxel(submitted, offered, corrected):
    found = read_segmentation(submitted)
    assert corrected.array.any()
    assert same_grid(found, read_volume(offered.folder))
    assert np.array_equal(found.array, corrected.array)
    assert dict(open_segmentation(submitted).structures) == {1: "kidney"}


def test_a_submitted_label_refers_to_the_slices_and_the_patient(submitted, offered):
    dataset = pydicom.dcmread(submitted)
    (series,) = dataset.ReferencedSeriesSequence
    slices = [pydicom.dcmread(file, stop_before_pixels=True) for file in offered.folder.iterdir()]
    named = {item.ReferencedSOPInstanceUID for item in series.ReferencedInstanceSequence}
    assert (dataset.StudyInstanceUID, series.SeriesInstanceUID) == (offered.uid, offered.series_uid)
    assert named == {item.SOPInstanceUID for item in slices}
    assert (dataset.PatientName, dataset.PatientID) == (PATIENT["PatientName"], slices[0].PatientID)
    assert {segment.SegmentAlgorithmType for segment in dataset.SegmentSequence} == {"MANUAL"}


def test_after_the_review_another_study_is_offered(archive_server, submitted, offered):
    assert archive_server.next_sample() != offered.series_uid
    assert archive_server.server.get("/info/").json()["datastore"]["completed"] == 1


def test_no_log_of_the_review_names_a_patient(archive_server, submitted):
    logs = [archive_server.server.log, *archive_server.workspace.glob("logs/*")]
    texts = [log.read_text() for log in logs if log.is_file()]
    assert all(texts) and len(texts) >= 2
    assert not any(value in text for text in texts for value in ("Secret", *PATIENT.values()))
