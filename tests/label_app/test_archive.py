"""Studies of a DICOMweb archive, with an archive in memory; tests with Orthanc are in test_orthanc.py."""

import json
from types import SimpleNamespace

import numpy as np
import pydicom
import pytest
import requests
from label_app.dicom_studies import PATIENT, write_study
from label_app.memory_archive import put_segmentation, submitted
from pydicom.errors import InvalidDicomError

from medssl.core.errors import DataError
from medssl.data.dicom_seg import read_segmentation, write_segmentation
from medssl.data.volumes import read_volume, write_nifti
from medssl.data.voxel_grid import Volume, reordered

pytest.importorskip("monailabel", reason="needs pip install 'medssl[label]'")
from monailabel.interfaces.exception import ImageNotFoundException

import medssl.label_app.shim.sitecustomize  # noqa: F401
from medssl.label_app.app import ReviewApp
from medssl.label_app.archive import ArchiveDatastore
from medssl.label_app.queue import BackgroundScoring, WaitingViewers, next_study
from medssl.label_app.studies import Studies
from medssl.label_app.training_cases import patients_of


@pytest.fixture
def store(archive, tmp_path):
    return ArchiveDatastore(archive, {"Modality": "CT"}, tmp_path / "cache", {1: "kidney", 2: "lesion"})


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
    store.save_result(study.series_uid, submitted(study, tmp_path), "uncertainty", {})
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


@pytest.mark.parametrize("slices", [slice(5, 6), slice(4, 9)], ids=["one", "some"])
def test_segmentation_of_some_slices_that_lists_them_backwards_as_ohif_does_is_fetched(
    store, archive, study, tmp_path, slices
):
    drawn = np.zeros_like(study.label.array)
    drawn[20:30, 20:30, slices] = 1
    drawn = Volume(drawn, study.label.affine)
    write_segmentation(drawn, study.folder, tmp_path / "seg.dcm", {1: "kidney"}, algorithm=None)
    file = pydicom.dcmread(tmp_path / "seg.dcm")
    (listed,) = file.ReferencedSeriesSequence
    listed.ReferencedInstanceSequence = list(reversed(listed.ReferencedInstanceSequence))
    archive.files.append(file)
    label = read_volume(store.reviewed()[study.series_uid])
    assert np.array_equal(label.array, reordered(drawn, label).array)


def proposals(archive):
    return [file for file in archive.files if file.Modality == "SEG"]


@pytest.fixture
def found(study):
    """What a model has found: the phantom's kidney, and a lesion in it."""
    array = study.label.array.copy()
    array[tuple(np.argwhere(array)[0])] = 2
    return Volume(array, study.label.affine)


def test_what_the_model_proposes_is_stored_once_for_its_weights_and_is_no_review(
    store, archive, study, found, tmp_path
):
    for weights in ("0a", "0a", "0b"):
        store.propose(study.series_uid, found, weights)
    first, second = proposals(archive)
    assert first.SeriesInstanceUID != second.SeriesInstanceUID
    assert first.SOPInstanceUID == first.file_meta.MediaStorageSOPInstanceUID != second.SOPInstanceUID
    assert [item.SegmentLabel for item in first.SegmentSequence] == ["kidney", "lesion"]
    assert {item.SegmentAlgorithmType for item in first.SegmentSequence} == {"AUTOMATIC"}
    assert first.SegmentSequence[0].SegmentAlgorithmName.endswith("weights 0a")
    assert store.get_unlabeled_images() == [study.series_uid] and store.reviewed() == {}
    first.save_as(tmp_path / "seg.dcm")
    assert np.array_equal(reordered(read_segmentation(tmp_path / "seg.dcm"), found).array, found.array)


def test_proposal_has_no_empty_segments_which_ohif_cannot_open(store, archive, study, found):
    store.propose(study.series_uid, Volume(np.zeros_like(found.array), found.affine), "0a")
    assert proposals(archive) == []
    store.propose(study.series_uid, Volume(found.array * (found.array == 2), found.affine), "0a")
    assert [item.SegmentLabel for item in proposals(archive)[0].SegmentSequence] == ["lesion"]


def test_proposal_that_was_corrected_is_a_review(store, archive, study, tmp_path):
    store.propose(study.series_uid, study.label, "0a")
    (tmp_path / "seg").mkdir()
    write_segmentation(
        study.label, study.folder, tmp_path / "seg" / "1.dcm", {1: "kidney", 2: "lesion"}, algorithm=None
    )
    archive.add(tmp_path / "seg")
    assert store.get_labeled_images() == list(store.reviewed()) == [study.series_uid]


def test_segmentation_of_something_else_is_left_out_with_the_reason(store, archive, study, tmp_path, caplog):
    (tmp_path / "seg").mkdir()
    write_segmentation(study.label, study.folder, tmp_path / "seg" / "1.dcm", {1: "liver", 2: "lesion"}, algorithm=None)
    archive.add(tmp_path / "seg")
    assert store.reviewed() == {} and "segment 'liver'" in caplog.text
    assert study.series_uid not in caplog.text and study.uid not in caplog.text


def test_segmentation_of_other_structures_is_no_review_of_ours(store, archive, study, tmp_path):
    put_segmentation(archive, study, tmp_path / "seg", {1: "liver", 2: "spleen"})
    assert store.get_unlabeled_images() == [study.series_uid] and store.reviewed() == {}


def test_study_is_offered_again_once_its_segmentation_has_turned_out_to_be_unusable(store, archive, study, tmp_path):
    put_segmentation(archive, study, tmp_path / "usable", {1: "kidney", 2: "lesion"})
    put_segmentation(archive, study, tmp_path / "newer", {1: "liver", 2: "lesion"})
    assert list(store.reviewed()) == [study.series_uid]  # the one before it is taken
    archive.files = [file for file in archive.files if file.Modality != "SEG"]
    put_segmentation(archive, study, tmp_path / "alone", {1: "liver", 2: "lesion"})
    assert store.reviewed() == {} and store.get_unlabeled_images() == [study.series_uid]
    anew = ArchiveDatastore(archive, {"Modality": "CT"}, tmp_path / "cache", {1: "kidney", 2: "lesion"})
    assert anew.get_unlabeled_images() == [study.series_uid]


@pytest.mark.parametrize("fault", [requests.HTTPError("500"), InvalidDicomError("no DICOM")])
def test_segmentation_that_cannot_be_had_does_not_hide_the_others(store, archive, study, tmp_path, fault):
    uid = put_segmentation(archive, study, tmp_path / "seg", {1: "kidney", 2: "lesion"})
    archive.faults[uid] = fault
    assert store.get_unlabeled_images() == [study.series_uid] and store.reviewed() == {}
    archive.faults.clear()
    assert list(store.reviewed()) == [study.series_uid]


def test_segmentation_of_a_series_that_is_gone_is_no_review(store, archive, study, tmp_path):
    put_segmentation(archive, study, tmp_path / "seg", {1: "kidney", 2: "lesion"})
    archive.files = [file for file in archive.files if file.Modality == "SEG"]
    assert store.reviewed() == {} and store.list_images() == []


@pytest.mark.filterwarnings("ignore:Invalid value for VR UI")
@pytest.mark.parametrize("name", ["../../../outside", "{here}/outside", "a/b"])
def test_names_inside_of_files_do_not_lead_out_of_the_cache(archive, study, tmp_path, name):
    name = name.format(here=tmp_path)
    archive.files[3].SOPInstanceUID = name
    archive.files[3].file_meta.MediaStorageSOPInstanceUID = name
    store = ArchiveDatastore(archive, {"Modality": "CT"}, tmp_path / "deep" / "cache", {1: "kidney"})
    before = {path for path in tmp_path.rglob("*") if tmp_path / "deep" not in path.parents}
    assert read_volume(store.get_image_uri(study.series_uid)).shape == study.scan.shape
    put_segmentation(archive, study, tmp_path / "seg", {1: "kidney", 2: "lesion"})
    archive.files[-1].SOPInstanceUID = name
    store.reviewed()
    new = {path for path in tmp_path.rglob("*") if tmp_path / "deep" not in path.parents} - before
    assert {path.relative_to(tmp_path).parts[0] for path in new} == {"seg"}
    assert len(list((tmp_path / "deep" / "cache" / study.series_uid).iterdir())) == study.scan.shape[2]


@pytest.fixture
def growing(archive):
    """The archive while only half of the series has arrived; the rest."""
    files = sorted(archive.files, key=lambda file: float(file.ImagePositionPatient[2]))
    archive.files = files[: len(files) // 2]
    return files[len(files) // 2 :]


def test_series_that_was_still_being_sent_is_fetched_again(store, archive, study, growing):
    half = read_volume(store.get_image_uri(study.series_uid)).shape
    version = store.version(study.series_uid)
    assert read_volume(store.get_image_uri(study.series_uid)).shape == half and len(archive.downloads) == 1
    archive.files += growing
    store.refresh()
    assert store.version(study.series_uid) != version
    assert read_volume(store.get_image_uri(study.series_uid)).shape == study.scan.shape != half
    store.get_image_uri(study.series_uid)
    assert len(archive.downloads) == 2


def test_growing_series_is_noticed_after_a_restart_and_kept_while_the_archive_is_away(store, archive, study, growing):
    half = read_volume(store.get_image_uri(study.series_uid)).shape
    anew = ArchiveDatastore(archive, {"Modality": "CT"}, store.root, {1: "kidney"})
    archive.files += growing
    archive.search_for_series, search = away, archive.search_for_series
    assert read_volume(anew.get_image_uri(study.series_uid)).shape == half
    archive.search_for_series = search
    archive.fail_after = 3
    with pytest.raises(ConnectionError):
        anew.get_image_uri(study.series_uid)
    assert len(list((store.root / study.series_uid).iterdir())) == half[2]
    archive.fail_after = None
    assert read_volume(anew.get_image_uri(study.series_uid)).shape == study.scan.shape


def away(**_):
    raise requests.ConnectionError("the archive is away")


def test_archive_that_never_gives_all_it_counts_is_not_asked_for_ever(store, archive, study):
    search = archive.search_for_series

    def counting_more(search_filters):
        found = search(search_filters)
        for entry in found:
            entry["00201209"]["Value"][0] += 1
        return found

    archive.search_for_series = counting_more
    for _ in range(3):
        store.get_image_uri(study.series_uid)
    assert len(archive.downloads) == 1


@pytest.mark.parametrize("asked", ["refresh", "reviewed"])
def test_label_of_half_a_series_is_set_aside_when_the_rest_has_come(store, archive, study, growing, tmp_path, asked):
    scan = read_volume(store.get_image_uri(study.series_uid))
    for _ in range(2):
        write_nifti(tmp_path / "label.nii.gz", np.ones(scan.shape), scan.affine, np.uint8)
        store.save_label(study.series_uid, str(tmp_path / "label.nii.gz"), "final", {})
        archive.files[-1].ContentTime = f"{len(archive.files):06d}"
    assert store.get_labeled_images() == [study.series_uid]
    archive.files += growing
    getattr(store, asked)()
    assert store.get_unlabeled_images() == [study.series_uid] and store.reviewed() == {}
    assert read_volume(store.get_label_uri(study.series_uid, "outgrown")).shape == scan.shape
    store.save_label(study.series_uid, submitted(study, tmp_path), "final", {})
    assert store.get_labeled_images() == list(store.reviewed()) == [study.series_uid]


class Model:
    """A served model as far as studies look at it."""

    def __init__(self, root):
        self.workspace = SimpleNamespace(root=root)

    def load(self):
        return SimpleNamespace(settings={"weights": "w"})


@pytest.fixture
def two_studies(archive, store, study, tmp_path, monkeypatch):
    """Two series, the first of them at fault in some way; what the model says is made up, of their size."""
    archive.add(write_study(tmp_path / "more", 21).folder)
    studies = Studies(store, Model(tmp_path))

    def predict(name, scan, loaded, made_by):
        record = {"id": name, "score": 0.5, "slices": read_volume(scan).shape[2], "structures": {}}
        store.update_image_info(name, {"medssl": {"made_by": made_by, "record": record}})

    monkeypatch.setattr(studies, "_predict", predict)
    return studies, *store.list_images()


def next_sample(studies, seed):
    strategies = {"random": lambda request, store: next_study(studies, "random", seed)}
    app = SimpleNamespace(_strategies=strategies, datastore=lambda: studies.datastore, results=studies)
    return ReviewApp.next_sample(app, {"strategy": "random"})["id"]


@pytest.mark.parametrize("fault", [requests.HTTPError("500"), InvalidDicomError("no DICOM")])
def test_series_that_cannot_be_had_does_not_keep_the_others_waiting(archive, two_studies, fault):
    studies, bad, good = two_studies
    archive.faults[bad] = fault
    assert {next_sample(studies, seed) for seed in range(4)} == {good}
    scoring = BackgroundScoring(studies, WaitingViewers())
    while scoring._score_one():
        pass
    assert studies.record(good) and type(fault).__name__ in studies.failure(bad)
    archive.faults.clear()
    studies.result(bad)
    assert studies.record(bad) and studies.failure(bad) is None


@pytest.mark.parametrize("fault", [MemoryError("cannot allocate"), KeyError("x"), ZeroDivisionError()])
def test_study_that_fails_in_any_way_does_not_keep_the_others_waiting(two_studies, monkeypatch, fault):
    studies, bad, good = two_studies
    predict, asked = studies._predict, []

    def failing(name, *rest):
        asked.append(name)
        if name == bad:
            raise fault
        predict(name, *rest)

    monkeypatch.setattr(studies, "_predict", failing)
    scoring = BackgroundScoring(studies, WaitingViewers())
    while scoring._score_one():
        pass
    assert asked == [bad, good] and studies.record(good) and type(fault).__name__ in studies.failure(bad)


def test_archive_that_is_away_is_no_fault_of_a_study(archive, two_studies):
    studies, first, _ = two_studies
    archive.faults[first] = requests.ConnectionError("away")
    with pytest.raises(requests.ConnectionError):
        studies.result(first)
    assert studies.failure(first) is None


@pytest.mark.parametrize("in_order", [True, False])
def test_series_that_has_grown_is_scored_anew(archive, two_studies, in_order):
    studies, name, _ = two_studies
    files = sorted((f for f in archive.files if f.SeriesInstanceUID == name), key=lambda f: f.ImagePositionPatient[2])
    late = files[-2:] if in_order else files[5:7]  # with a gap it cannot be scored at first
    archive.files = [file for file in archive.files if file not in late]
    scoring = BackgroundScoring(studies, WaitingViewers())
    while scoring._score_one():
        pass
    assert (studies.failure(name) is None) == in_order
    archive.files += late
    while scoring._score_one():
        pass
    assert studies.record(name)["slices"] == len(files) and studies.failure(name) is None


def test_nothing_of_the_patient_is_kept_beside_the_series(store, study, tmp_path, caplog):
    caplog.set_level("INFO", "medssl")
    store.save_label(study.series_uid, submitted(study, tmp_path), "final", {})
    patients = patients_of(store)
    texts = [(tmp_path / "cache" / "datastore_v2.json").read_text(), caplog.text, json.dumps(patients)]
    assert not [value for value in PATIENT.values() for text in texts if value in text]
    assert patients[study.series_uid] != study.series_uid
