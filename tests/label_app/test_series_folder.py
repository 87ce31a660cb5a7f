"""Studies of a folder of DICOM series: found, converted, reviewed, changed, removed; the files stay as they are."""

import json
import shutil

import numpy as np
import pydicom
import pytest
from label_app.dicom_studies import PATIENT, write_study
from pydicom.uid import generate_uid

from medssl.core.errors import DataError
from medssl.data.dicom_seg import open_segmentation
from medssl.data.volumes import content_digest, read_volume, write_nifti
from medssl.data.voxel_grid import reordered

pytest.importorskip("monailabel", reason="needs pip install 'medssl[label]'")
from monailabel.interfaces.exception import ImageNotFoundException

import medssl.label_app.shim.sitecustomize  # noqa: F401
from medssl.label_app.series_folder import FolderOfSeries
from medssl.label_app.series_map import map_series, series_id, write_map
from medssl.label_app.training_cases import patients_of, study_examples

STRUCTURES = {1: "kidney", 2: "lesion"}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("written")
    return [write_study(folder, 20), write_study(folder, 21, coronal=True)]


@pytest.fixture
def studies(written, tmp_path):
    """A folder that names a patient, as folders do, with a folder for each series."""
    for study in written:
        shutil.copytree(study.folder, tmp_path / "Secret^Name" / study.folder.name)
    return tmp_path / "Secret^Name"


@pytest.fixture
def opened(studies, tmp_path):
    """Opens the folder as a server does that is started anew."""

    def start(modality="CT"):
        (tmp_path / "workspace").mkdir(exist_ok=True)
        write_map(tmp_path / "workspace" / "series.json", map_series(studies, modality, tmp_path / "workspace"))
        return FolderOfSeries(tmp_path / "workspace" / "series.json", tmp_path / "workspace" / "series", STRUCTURES)

    return start


def ids(written):
    return [series_id(study.series_uid) for study in written]


def submit(store, study, folder):
    write_nifti(folder / "label.nii.gz", study.label.array, study.label.affine, np.uint8)
    store.save_label(series_id(study.series_uid), str(folder / "label.nii.gz"), "final", {})


def change(files, **elements):
    for file in files:
        dataset = pydicom.dcmread(file)
        for name, value in elements.items():
            setattr(dataset, name, value(dataset) if callable(value) else value)
        dataset.save_as(file)


def test_series_become_scans_without_loss_and_stay_as_they_are(opened, written, studies):
    before = content_digest(studies)
    store = opened()
    assert store.list_images() == store.get_unlabeled_images() == sorted(ids(written))
    for study, name in zip(written, ids(written), strict=True):
        scan, series = read_volume(store.get_image_uri(name)), read_volume(study.folder)
        assert scan.array.dtype == np.int16 and np.array_equal(scan.array, series.array)
        assert np.allclose(scan.affine, series.affine, atol=1e-5)
    assert store.status()["total"] == 2 and content_digest(studies) == before


def test_rescaled_values_that_are_no_integers_are_kept_as_well(opened, written, studies):
    change((studies / "study_20").iterdir(), RescaleSlope="0.25")
    scan = read_volume(opened().get_image_uri(ids(written)[0]))
    assert scan.array.dtype == np.float32 and np.array_equal(scan.array, read_volume(studies / "study_20").array)


def test_ids_and_texts_say_nothing_of_the_patient(opened, written, tmp_path, caplog):
    caplog.set_level("INFO", "medssl")
    store = opened()
    submit(store, written[0], tmp_path)
    texts = [str(store.json()), str(store.list_images()), caplog.text, json.dumps(patients_of(store))]
    texts += [store.get_image_uri(name).removeprefix(str(tmp_path)) for name in store.list_images()]
    uids = [study.series_uid for study in written]
    assert not [value for value in (*PATIENT.values(), *uids) for text in texts if value in text]
    assert len({*patients_of(store).values(), *ids(written)}) == 4


@pytest.mark.parametrize("fault", ["gap", "tilt", "orientation"])
def test_bad_series_is_named_by_its_id_and_does_not_stop_the_others(fault, opened, written, studies, tmp_path, caplog):
    files = sorted((studies / "study_20").iterdir())
    if fault == "gap":
        files[7].unlink()
    elif fault == "tilt":
        change(files, ImagePositionPatient=lambda slice_: shifted(slice_, slice_.InstanceNumber))
    else:
        change(files[3:4], ImageOrientationPatient=[0, 1, 0, 0, 0, 1])
    store, (bad, good) = opened(), ids(written)
    for _ in range(2):
        with pytest.raises(DataError, match=bad):
            store.get_image_uri(bad)
    assert read_volume(store.get_image_uri(good)).shape == written[1].scan.shape
    assert caplog.text.count(bad) == 1 and "Secret" not in caplog.text
    reasons = json.loads((tmp_path / "workspace" / "series" / "problems.json").read_text())
    words = {"gap": "missing slices", "tilt": "gantry tilt", "orientation": "another orientation"}
    assert list(reasons) == [bad] and words[fault] in reasons[bad] and str(tmp_path) not in reasons[bad]
    submit(store, written[1], tmp_path)
    assert [example.id for example in study_examples(store, tmp_path / "held_out.json")] == [good]


def shifted(slice_, steps):
    position = list(slice_.ImagePositionPatient)
    return [position[0], position[1] + 0.5 * steps, position[2]]


def test_submitted_label_is_kept_as_nifti_and_as_dicom_seg_of_the_series(opened, written, studies, tmp_path):
    store = opened()
    for study, name in zip(written, ids(written), strict=True):
        submit(store, study, tmp_path)
        file = tmp_path / "workspace" / "series" / "dicom_seg" / f"{name}.dcm"
        found = open_segmentation(file)
        assert found.structures == STRUCTURES
        label, series = read_volume(store.reviewed()[name]), read_volume(file)
        assert np.array_equal(reordered(series, label).array, label.array) and label.array.any()
        dataset = pydicom.dcmread(file)
        assert dataset.ReferencedSeriesSequence[0].SeriesInstanceUID == study.series_uid
        assert {item.SegmentAlgorithmType for item in dataset.SegmentSequence} == {"MANUAL"}
    assert store.get_unlabeled_images() == [] and len(store.datalist()) == 2


def test_label_of_a_series_that_no_file_can_refer_to_is_kept_nevertheless(opened, written, studies, tmp_path, caplog):
    change((studies / "study_20").iterdir(), FrameOfReferenceUID="")
    store = opened()
    submit(store, written[0], tmp_path)
    assert list(store.reviewed()) == ids(written)[:1] and ids(written)[0] in caplog.text
    assert not (tmp_path / "workspace" / "series" / "dicom_seg").exists()
    assert "no FrameOfReferenceUID" in store.get_label_info(ids(written)[0], "final")["no_dicom_seg"]


def test_restart_keeps_labels_and_sees_what_is_new_gone_and_back(opened, written, studies, tmp_path):
    (first, second), store = ids(written), opened()
    submit(store, written[0], tmp_path)
    patients = patients_of(store)
    (studies / "study_20").rename(tmp_path / "away")
    third = write_study(studies, 22)
    store = opened()
    assert store.list_images() == sorted([second, series_id(third.series_uid)]) and store.reviewed() == {}
    with pytest.raises(ImageNotFoundException):
        store.get_image_uri(series_id(generate_uid()))
    (tmp_path / "away").rename(studies / "renamed")
    before, store = patients_of(store), opened()
    assert patients_of(store) == {**before, first: patients[first]}
    assert len(store.list_images()) == 3 and list(store.reviewed()) == [first]
    assert np.array_equal(read_volume(store.get_image_uri(first)).array, read_volume(studies / "renamed").array)


def test_series_that_has_grown_is_converted_anew_and_reviewed_again(opened, written, studies, tmp_path):
    last, name = sorted((studies / "study_20").iterdir())[0], ids(written)[0]
    last.rename(tmp_path / "late.dcm")
    store = opened()
    scan = read_volume(store.get_image_uri(name))
    write_nifti(tmp_path / "label.nii.gz", np.ones(scan.shape), scan.affine, np.uint8)
    store.save_label(name, str(tmp_path / "label.nii.gz"), "final", {})
    (tmp_path / "late.dcm").rename(last)
    store = opened()
    assert read_volume(store.get_image_uri(name)).shape == written[0].scan.shape
    assert store.reviewed() == {} and name in store.get_unlabeled_images()
    assert read_volume(store.get_label_uri(name, "outgrown")).shape == scan.shape


def test_series_that_is_mended_is_served_at_the_next_start(opened, written, studies, tmp_path):
    files, name = sorted((studies / "study_20").iterdir()), ids(written)[0]
    files[7].rename(tmp_path / "late.dcm")
    with pytest.raises(DataError):
        opened().get_image_uri(name)
    (tmp_path / "late.dcm").rename(files[7])
    store = opened()
    assert read_volume(store.get_image_uri(name)).shape == written[0].scan.shape
    assert json.loads((tmp_path / "workspace" / "series" / "problems.json").read_text()) == {}


def test_unknown_ids_are_not_found_and_leave_no_trace(opened, tmp_path, caplog):
    store = opened()
    for name in ("series-000000000000", "../x", "x\ny"):
        with pytest.raises(ImageNotFoundException):
            store.get_image_uri(name)
    assert caplog.text == ""


def test_what_a_power_cut_left_of_a_series_is_removed(opened, written, tmp_path):
    opened()
    left = tmp_path / "workspace" / "series" / ".0123456789abcdef.part"
    left.mkdir()
    (left / "00000.dcm").write_bytes(b"half")
    store = opened()
    assert not left.exists() and len(store.list_images()) == 2


def test_folder_without_a_series_of_the_modality_is_refused(opened):
    with pytest.raises(DataError, match="2 of another modality"):
        opened("MR")


def test_scans_that_are_no_series_are_not_taken(opened, written, tmp_path):
    write_nifti(tmp_path / "scan.nii.gz", written[0].scan.array, written[0].scan.affine, np.int16)
    store = opened()
    with pytest.raises(DataError, match="DICOM series"):
        store.add_image("scan", str(tmp_path / "scan.nii.gz"), {})
    assert len(store.list_images()) == 2
