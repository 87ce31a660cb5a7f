"""Studies of a DICOMweb archive, with an archive in memory; tests with Orthanc are in test_orthanc.py."""

import json
from pathlib import Path

import numpy as np
import pydicom
import pytest
from label_app.dicom_studies import PATIENT, write_study
from pydicom.dataset import Dataset

from medssl.data.dicom_seg import read_segmentation, write_segmentation
from medssl.data.geometry import Volume, reordered
from medssl.data.volumes import read_volume, write_nifti
from medssl.errors import DataError

pytest.importorskip("monailabel", reason="needs pip install 'medssl[label]'")
from monailabel.interfaces.exception import ImageNotFoundException

import medssl.label_app.shim.sitecustomize  # noqa: F401
from medssl.label_app.archive import ArchiveDatastore
from medssl.label_app.training_cases import patients_of


class Archive:
    """A DICOMweb client and its archive in one."""

    base_url = "http://127.0.0.1/dicom-web"

    def __init__(self):
        self.files, self.fail_after = [], None

    def add(self, folder):
        self.files += [pydicom.dcmread(file) for file in sorted(Path(folder).iterdir())]

    def search_for_series(self, search_filters):
        found = {str(file.SeriesInstanceUID): file for file in self.files if fits(file, search_filters)}
        return [json.loads(brief(file).to_json()) for file in found.values()]

    def retrieve_series(self, study, series):
        chosen = [file for file in self.files if file.SeriesInstanceUID == series]
        for number, file in enumerate(chosen):
            if number == self.fail_after:
                raise ConnectionError("the archive is away")
            yield file

    def retrieve_series_metadata(self, study, series):
        file = next(file for file in self.files if file.SeriesInstanceUID == series)
        return [json.loads(file.to_json(bulk_data_threshold=10**9, bulk_data_element_handler=lambda _: ""))]

    def store_instances(self, datasets):
        self.files += datasets
        return Dataset()


def fits(file, filters):
    return all(str(file.get(name)) == value for name, value in filters.items())


def brief(file):
    found = Dataset()
    for name in ("SeriesInstanceUID", "StudyInstanceUID", "Modality", "PatientID", "PatientName", "PatientBirthDate"):
        if name in file:
            found[name] = file[name]
    return found


@pytest.fixture
def study(tmp_path):
    return write_study(tmp_path / "series", 20)


@pytest.fixture
def archive(study):
    archive = Archive()
    archive.add(study.folder)
    return archive


@pytest.fixture
def store(archive, tmp_path):
    return ArchiveDatastore(archive, {"Modality": "CT"}, tmp_path / "cache", {1: "kidney", 2: "lesion"})


def submitted(study, folder):
    write_nifti(folder / "label.nii.gz", study.label.array, study.label.affine, np.uint8)
    return str(folder / "label.nii.gz")


def test_series_are_studies_and_become_volumes_on_their_own_grid(store, study):
    assert store.list_images() == store.get_unlabeled_images() == [study.series_uid]
    found, expected = read_volume(store.get_image_uri(study.series_uid)), read_volume(study.folder)
    assert np.array_equal(found.array, expected.array) and np.allclose(found.affine, expected.affine)
    assert store.get_image_info(study.series_uid)["StudyInstanceUID"] == study.uid


def test_download_that_breaks_off_leaves_nothing_to_be_taken_for_a_scan(store, archive, study, tmp_path):
    archive.fail_after = 5
    with pytest.raises(ConnectionError):
        store.get_image_uri(study.series_uid)
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.suffix in (".dcm", ".gz")]
    archive.fail_after = None
    assert read_volume(store.get_image_uri(study.series_uid)).shape == study.scan.shape


def test_series_with_a_gap_is_refused(store, archive, study):
    del archive.files[7]
    with pytest.raises(DataError, match="missing slices"):
        store.get_image_uri(study.series_uid)


def test_unknown_series_are_not_found_and_odd_ids_refused(store):
    with pytest.raises(ImageNotFoundException):
        store.get_image_uri("1.2.3")
    with pytest.raises(DataError):
        store.get_image_uri("../x")


def test_submitted_label_comes_into_the_archive_voxel_for_voxel(store, archive, study, tmp_path):
    store.save_label(study.series_uid, submitted(study, tmp_path), "final", {})
    stored = archive.files[-1]
    assert stored.Modality == "SEG" and stored.ReferencedSeriesSequence[0].SeriesInstanceUID == study.series_uid
    stored.save_as(tmp_path / "seg.dcm")
    found = reordered(read_segmentation(tmp_path / "seg.dcm"), study.label)
    assert np.array_equal(found.array, study.label.array)
    assert store.get_labeled_images() == [study.series_uid] and store.get_unlabeled_images() == []
    assert list(store.reviewed()) == [study.series_uid]


def test_maps_of_the_model_stay_out_of_the_archive(store, archive, study, tmp_path):
    before = len(archive.files)
    store.save_label(study.series_uid, submitted(study, tmp_path), "uncertainty", {})
    assert len(archive.files) == before and store.get_unlabeled_images() == [study.series_uid]


def test_segmentation_that_a_viewer_put_into_the_archive_is_fetched_by_its_names(store, archive, study, tmp_path):
    swapped = Volume(np.array([0, 2, 1], np.uint8)[study.label.array], study.label.affine)
    (tmp_path / "seg").mkdir()
    write_segmentation(swapped, study.folder, tmp_path / "seg" / "1.dcm", {2: "Kidney", 1: "lesion"}, algorithm=None)
    archive.add(tmp_path / "seg")
    assert store.get_labeled_images() == [study.series_uid]
    label = read_volume(store.reviewed()[study.series_uid])
    scan = read_volume(store.get_image_uri(study.series_uid))
    assert np.allclose(label.affine, scan.affine, atol=1e-3)
    assert np.array_equal(label.array, reordered(study.label, scan).array)


def test_proposal_of_a_model_is_no_review(store, archive, study, tmp_path):
    (tmp_path / "seg").mkdir()
    write_segmentation(study.label, study.folder, tmp_path / "seg" / "1.dcm", {1: "kidney", 2: "lesion"})
    archive.add(tmp_path / "seg")
    assert store.get_unlabeled_images() == [study.series_uid] and store.reviewed() == {}


def test_segmentation_of_something_else_is_left_out_with_the_reason(store, archive, study, tmp_path, caplog):
    (tmp_path / "seg").mkdir()
    write_segmentation(study.label, study.folder, tmp_path / "seg" / "1.dcm", {1: "liver", 2: "lesion"}, algorithm=None)
    archive.add(tmp_path / "seg")
    assert store.reviewed() == {} and "segment 'liver'" in caplog.text


def test_nothing_of_the_patient_is_kept_beside_the_series(store, study, tmp_path, caplog):
    caplog.set_level("INFO", "medssl")
    store.save_label(study.series_uid, submitted(study, tmp_path), "final", {})
    patients = patients_of(store)
    texts = [(tmp_path / "cache" / "datastore_v2.json").read_text(), caplog.text, json.dumps(patients)]
    assert not [value for value in PATIENT.values() for text in texts if value in text]
    assert patients[study.series_uid] != study.series_uid
