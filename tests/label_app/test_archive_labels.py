"""Which label of a series counts: the newest in any time zone, whole, taken by the archive, and never silently none."""

import datetime
import time

import numpy as np
import pydicom
import pytest
import requests
from label_app.memory_archive import put_segmentation, submitted
from pydicom.dataset import Dataset

from medssl.core.errors import DataError
from medssl.data.dicom_seg import write_segmentation
from medssl.data.volumes import read_volume, write_nifti
from medssl.data.voxel_grid import Volume, reordered

pytest.importorskip("monailabel", reason="needs pip install 'medssl[label]'")
import medssl.label_app.shim.sitecustomize  # noqa: F401
from medssl.label_app.archive import ArchiveDatastore
from medssl.label_app.archive_segmentations import made_at
from medssl.label_app.download import faults_of_series
from medssl.label_app.proposals import Proposals

STRUCTURES = {1: "kidney", 2: "lesion"}


@pytest.fixture
def opened(archive, tmp_path):
    """Opens the studies as the server does, or another process beside it."""
    return lambda read_only=False: ArchiveDatastore(
        archive, {"Modality": "CT"}, tmp_path / "cache", STRUCTURES, read_only
    )


@pytest.fixture
def store(opened):
    return opened()


@pytest.fixture
def drawn(study):
    """Another label than the phantom's."""
    array = np.zeros_like(study.label.array)
    array[20:30, 20:30, 4:9] = 1
    return Volume(array, study.label.affine)


def used_label(store, study):
    return read_volume(store.reviewed()[study.series_uid])


def is_label(found, expected):
    return np.array_equal(found.array, reordered(expected, found).array)


def put_drawn(archive, study, drawn, folder, made):
    """What OHIF exports: a file whose time is UTC and names no zone."""
    write_segmentation(drawn, study.folder, folder / "ohif.dcm", {1: "kidney"}, algorithm=None)
    file = pydicom.dcmread(folder / "ohif.dcm")
    file.ContentDate, file.ContentTime = made.strftime("%Y%m%d"), made.strftime("%H%M%S")
    if "TimezoneOffsetFromUTC" in file:
        del file.TimezoneOffsetFromUTC
    archive.files.append(file)


@pytest.fixture(params=["EAST-5", "UTC0", "WEST+5"])
def time_zone(request, monkeypatch):
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("minutes", [10, -10])
def test_the_newest_label_counts_in_every_time_zone(time_zone, store, archive, study, drawn, tmp_path, minutes):
    store.save_label(study.series_uid, submitted(study, tmp_path), "final", {})
    made = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=minutes)
    put_drawn(archive, study, drawn, tmp_path, made)
    assert is_label(used_label(store, study), drawn if minutes > 0 else study.label)


def test_label_says_when_it_was_made_in_the_time_zone_of_the_series(time_zone, store, archive, study, tmp_path):
    for file in archive.files:
        file.TimezoneOffsetFromUTC = "+0930"
    store.save_label(study.series_uid, submitted(study, tmp_path), "final", {})
    stored = archive.files[-1]
    assert stored.TimezoneOffsetFromUTC == "+0930" and stored.StudyTime == "030405"
    assert abs(made_at(stored) - datetime.datetime.now(datetime.UTC)) < datetime.timedelta(minutes=2)


@pytest.mark.parametrize("told", [{}, {"ContentDate": "x"}, {"ContentDate": "20200102", "ContentTime": "99"}])
def test_label_that_does_not_say_when_it_was_made_is_older_than_any_other(told):
    untold, old = Dataset.from_json({}), Dataset()
    old.ContentDate = "19000101"
    with pydicom.config.disable_value_validation():
        for name, value in told.items():
            setattr(untold, name, value)
    assert made_at(untold) < made_at(old)


def test_of_two_labels_of_the_same_time_the_one_that_is_here_stays(store, archive, study, tmp_path):
    first = put_segmentation(archive, study, tmp_path / "first", {1: "kidney", 2: "lesion"})
    store.reviewed()
    put_segmentation(archive, study, tmp_path / "second", {1: "kidney", 2: "lesion"})
    archive.files[-1].ContentTime = archive.files[-2].ContentTime
    archive.files[-2:] = archive.files[:-3:-1]
    store.reviewed()
    assert store.get_label_info(study.series_uid, "final")["SeriesInstanceUID"] == first


@pytest.mark.parametrize("moment", ["before", "after"])
def test_label_that_is_submitted_anew_while_a_training_begins_is_not_replaced(
    opened, archive, study, drawn, tmp_path, monkeypatch, moment
):
    server, training = opened(), opened(read_only=True)
    server.save_label(study.series_uid, submitted(study, tmp_path), "final", {})
    write_nifti(tmp_path / "new.nii.gz", drawn.array, drawn.affine, np.uint8)
    store_instances, turns = archive.store_instances, []

    def uploading(datasets):
        monkeypatch.setattr(training, "_submissions", training._submissions.__class__(tmp_path / "no_turns"))
        for step in ("before", "after"):
            if step == moment:
                turns.append(training.reviewed())
            if step == "before":
                store_instances(datasets)

    archive.store_instances = uploading
    server.save_label(study.series_uid, str(tmp_path / "new.nii.gz"), "final", {})
    archive.store_instances = store_instances
    assert turns and is_label(used_label(opened(), study), drawn)


def test_labels_are_not_fetched_while_one_is_being_submitted(opened, study, tmp_path, monkeypatch):
    server, held = opened(), []
    monkeypatch.setattr(server, "_keep_segmentation", lambda name: held.append(server._submissions.is_locked))
    server.save_label(study.series_uid, submitted(study, tmp_path), "final", {})
    assert held == [True] and not server._submissions.is_locked


def test_label_that_was_submitted_after_the_archive_was_asked_is_not_overwritten(
    store, opened, archive, study, drawn, tmp_path
):
    """The training process has a list of labels that is out of date by the time it fetches them."""
    put_segmentation(archive, study, tmp_path / "old", {1: "kidney", 2: "lesion"})
    training = opened(read_only=True)
    outdated = training._segmentations()
    write_nifti(tmp_path / "new.nii.gz", drawn.array, drawn.affine, np.uint8)
    store.save_label(study.series_uid, str(tmp_path / "new.nii.gz"), "final", {})
    training._take_labels(outdated)
    assert is_label(read_volume(store.get_label_uri(study.series_uid, "final")), drawn)


def test_what_the_archive_does_not_take_is_not_acknowledged(store, archive, study, tmp_path):
    refusal, failed = Dataset(), Dataset()
    failed.FailureReason = 0x0110
    refusal.FailedSOPSequence = [failed]
    archive.store_instances = lambda datasets: refusal
    with pytest.raises(DataError, match=r"not taken the segmentation .*0x0110"):
        store.save_label(study.series_uid, submitted(study, tmp_path), "final", {})
    assert store.get_labeled_images() == [] and store.reviewed() == {}
    with pytest.raises(DataError, match="not taken"):
        store.propose(study.series_uid, study.label, "0a")


def test_dropped_correction_is_in_the_log_at_once_and_in_what_a_training_leaves_out(
    store, opened, archive, study, tmp_path, caplog
):
    store.get_image_uri(study.series_uid)
    put_segmentation(archive, study, tmp_path / "usable", {1: "kidney", 2: "lesion"})
    store.refresh()
    assert caplog.text == "" and store.left_out() == []
    put_segmentation(archive, study, tmp_path / "misnamed", {1: "liver", 2: "lesion"})
    store.refresh()
    assert caplog.text.count("segment 'liver'") == 1 and study.series_uid not in caplog.text
    (dropped,) = opened(read_only=True).left_out() or [None]
    assert dropped["study"] == study.series_uid and "segment 'liver'" in dropped["reason"]
    assert list(store.reviewed()) == [study.series_uid]  # the one before it
    put_segmentation(archive, study, tmp_path / "mended", {1: "kidney", 2: "lesion"})
    store.refresh()
    assert store.left_out() == []


def test_series_that_are_not_here_are_not_fetched_for_their_labels_before_a_training(store, archive, study, tmp_path):
    put_segmentation(archive, study, tmp_path / "seg", {1: "kidney", 2: "lesion"})
    store.refresh()
    assert archive.downloads == [] and list(store.reviewed()) == [study.series_uid]


@pytest.mark.parametrize("slices", [[3, 9], [3, 5, 7], [3, 4, 9], [5]])
def test_drawn_slices_need_not_be_neighbours(store, archive, study, tmp_path, slices):
    array = np.zeros_like(study.label.array)
    array[20:30, 20:30, slices] = 1
    drawn = Volume(array, study.label.affine)
    write_segmentation(drawn, study.folder, tmp_path / "seg.dcm", {1: "kidney"}, algorithm=None)
    file = pydicom.dcmread(tmp_path / "seg.dcm")
    del file.SharedFunctionalGroupsSequence[0].PixelMeasuresSequence[0].SpacingBetweenSlices
    (listed,) = file.ReferencedSeriesSequence
    listed.ReferencedInstanceSequence = list(reversed(listed.ReferencedInstanceSequence))
    archive.files.append(file)
    assert is_label(used_label(store, study), drawn)


def test_series_that_has_grown_gets_another_proposal(store, archive, study):
    files = sorted(archive.files, key=lambda file: float(file.ImagePositionPatient[2]))
    archive.files = files[:-2]
    for _ in range(2):
        scan = read_volume(store.get_image_uri(study.series_uid))
        for _ in range(2):
            store.propose(study.series_uid, Volume(np.ones(scan.shape, np.uint8), scan.affine), "0a")
        archive.files += files[-2:]
        store.refresh()
    proposed = {file.SeriesInstanceUID: file.NumberOfFrames for file in archive.files if file.Modality == "SEG"}
    assert sorted(proposed.values()) == [len(files) - 2, len(files)]


def test_proposal_that_cannot_be_made_does_not_cost_the_viewers_answer(store, study, tmp_path, caplog):
    class Results:
        model = type("Model", (), {"workspace": type("Workspace", (), {"root": tmp_path})})

        def result(self, name):
            raise DataError("bad scan")

    Proposals(Results(), store).store(study.series_uid)
    assert "A proposal is not in the archive (DataError)" in caplog.text


@pytest.mark.parametrize(("status", "raised"), [(503, requests.ConnectionError), (429, requests.ConnectionError)])
def test_archive_that_is_busy_is_no_fault_of_a_series(status, raised):
    answer = requests.Response()
    answer.status_code = status
    with pytest.raises(raised), faults_of_series("1.2"):
        raise requests.HTTPError(response=answer)


@pytest.mark.parametrize("status", [404, 500])
def test_series_that_the_archive_cannot_give_is_at_fault(status):
    answer = requests.Response()
    answer.status_code = status
    with pytest.raises(DataError, match="Send it there again"), faults_of_series("1.2"):
        raise requests.HTTPError(response=answer)


def test_two_processes_do_not_bring_the_same_series_at_once(opened, study):
    server, training = opened(), opened(read_only=True)
    with server._turn(study.series_uid), pytest.raises(TimeoutError):
        training._turn(study.series_uid).acquire(timeout=0)
    assert server.get_image_uri(study.series_uid) == training.get_image_uri(study.series_uid)


def without_pixels(file):
    file.PixelData = b""


def without_size(file):
    file.Rows = file.Columns = 0


def larger_than_any_memory(file):
    file.Rows = file.Columns = 60000
    file.SharedFunctionalGroupsSequence[0].PixelMeasuresSequence[0].SpacingBetweenSlices = 1e-3


@pytest.mark.parametrize("damage", [without_pixels, without_size, larger_than_any_memory])
def test_damaged_segmentation_is_left_out_with_its_reason_and_the_one_before_it_counts(
    store, archive, study, tmp_path, damage
):
    put_segmentation(archive, study, tmp_path / "good", STRUCTURES)
    put_segmentation(archive, study, tmp_path / "bad", STRUCTURES)
    damage(archive.files[-1])
    store.get_image_uri(study.series_uid)
    store.refresh()  # a study that is scored next asks for this
    assert is_label(used_label(store, study), study.label)
    [left_out] = store.left_out()
    assert left_out["study"] == study.series_uid and "segmentation" in left_out["reason"]


def test_segmentation_there_is_no_memory_for_is_fetched_when_there_is(store, archive, study, tmp_path, monkeypatch):
    put_segmentation(archive, study, tmp_path / "drawn", STRUCTURES)
    with monkeypatch.context() as patch:
        patch.setattr("medssl.label_app.archive.reordered", no_memory)
        assert store.reviewed() == {}
    assert is_label(used_label(store, study), study.label)


def no_memory(*_):
    raise MemoryError


def test_others_can_submit_while_a_segmentation_is_fetched(store, opened, archive, study, drawn, tmp_path, monkeypatch):
    put_segmentation(archive, study, tmp_path / "old", STRUCTURES)
    write_nifti(tmp_path / "new.nii.gz", drawn.array, drawn.affine, np.uint8)
    server, fetch = opened(), archive.retrieve_series

    def submitting(study_uid, series):
        if series != study.series_uid:  # the label is on its way: a lock that is held now would be waited for for ever
            monkeypatch.setattr(archive, "retrieve_series", fetch)
            server.save_label(study.series_uid, str(tmp_path / "new.nii.gz"), "final", {})
        yield from fetch(study_uid, series)

    store.get_image_uri(study.series_uid)
    monkeypatch.setattr(archive, "retrieve_series", submitting)
    assert is_label(used_label(store, study), drawn)  # the one that was submitted meanwhile is newer


@pytest.mark.parametrize("own", ["SeriesInstanceUID", "ts", "name"])
def test_what_tells_whether_a_label_is_the_newest_is_not_changed_from_outside(store, study, tmp_path, own):
    store.save_label(study.series_uid, submitted(study, tmp_path), "final", {})
    with pytest.raises(DataError, match=own):
        store.update_label_info(study.series_uid, "final", {own: "1.2.3"})
