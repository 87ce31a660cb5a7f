"""What cannot become or be read as a DICOM SEG file is refused by name, and no text says whose scan it is."""

import logging
import sys
import warnings

import numpy as np
import pydicom
import pytest
from pydicom.uid import generate_uid

from medssl.core.errors import ConfigError, DataError
from medssl.data.dicom_seg import read_segmentation, write_segmentation
from medssl.data.voxel_grid import Volume

pytest.importorskip("highdicom")

STRUCTURES = {2: "kidney", 7: "lesion"}


def shifted(labels):
    affine = labels.affine.copy()
    affine[2, 3] += 1
    return Volume(labels.array, affine)


# name: what is done to the labels, words of the message
BAD_LABELS = {
    "id without a name": (
        lambda v: Volume(v.array + 1, v.affine),
        "label ids [1, 3, 8] without a name, expected 0 and [2",
    ),
    "fractional": (lambda v: Volume(v.array * 0.5, v.affine), "label ids [1.0, 3.5]"),
    "negative": (lambda v: Volume(v.array.astype(int) - 2, v.affine), "label ids [-2, 5]"),
    "above 16 bits": (lambda v: Volume(v.array.astype(int) + 2**16, v.affine), "label ids [65536"),
    "nan": (lambda v: Volume(np.where(v.array == 7, np.nan, v.array), v.affine), "label ids [nan]"),
    "other shape": (lambda v: Volume(v.array[:, :-1], v.affine), "do not fit the series"),
    "other origin": (shifted, "origin"),
    "other spacing": (lambda v: Volume(v.array, v.affine @ np.diag([2, 1, 1, 1])), "spacing"),
    "turned a little": (
        lambda v: Volume(v.array, np.array([[1, 0.02, 0, 0], [-0.02, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]) @ v.affine),
        "do not fit the series",
    ),
    "no affine": (lambda v: Volume(v.array, np.full((4, 4), np.nan)), "affine with NaN"),
    "2-D": (lambda v: Volume(v.array[..., 0], v.affine), "3-D (X, Y, Z)"),
}


@pytest.mark.parametrize("change, words", BAD_LABELS.values(), ids=BAD_LABELS)
def test_labels_that_do_not_fit_are_refused_by_name(change, words, write_series, draw_labels, tmp_path):
    series = write_series(7)
    labels = draw_labels(series)
    with pytest.raises(DataError) as caught:
        write_segmentation(change(labels), series, tmp_path / "seg.dcm", STRUCTURES)
    assert str(tmp_path / "seg.dcm") in str(caught.value)
    assert words in str(caught.value)
    assert not (tmp_path / "seg.dcm").exists()


def another_study(dataset, index):
    dataset.StudyInstanceUID = generate_uid()


BAD_SERIES = {
    "no study": ({"StudyInstanceUID": None}, "no StudyInstanceUID, expected one"),
    "no frame of reference": ({"FrameOfReferenceUID": None}, "no FrameOfReferenceUID"),
    "two studies": ({"edit": another_study}, "another study"),
    "tiny": ({"Rows": 1, "Columns": 4, "PixelData": b"\0" * 8}, "at least 8 pixels"),
    "no scan": ({"SOPClassUID": "1.2.3"}, "highdicom refuses the series"),
}


@pytest.mark.parametrize("faults, words", BAD_SERIES.values(), ids=BAD_SERIES)
def test_series_that_cannot_be_referred_to_is_refused_without_patient_data(
    faults, words, write_series, draw_labels, tmp_path
):
    series = write_series(7, **faults)
    labels = draw_labels(series)
    with pytest.raises(DataError) as caught:
        write_segmentation(labels, series, tmp_path / "seg.dcm", STRUCTURES)
    text = str(caught.value)
    assert str(series) in text and words in text
    assert not [secret for secret in ("Secret", "SECRET", "1901") if secret in text]


def test_odd_patient_data_is_written_to_no_log(write_series, draw_labels, tmp_path, caplog, capfd):
    odd = dict.fromkeys(("PatientSex", "StudyTime", "PatientBirthDate"), "Secret")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        series = write_series(PatientName="Secret without caret", **odd)
    labels = draw_labels(series)
    caplog.clear()
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings():
        warnings.simplefilter("error")
        write_segmentation(labels, series, tmp_path / "seg.dcm", STRUCTURES)
    assert "secret" not in caplog.text.lower() + "".join(capfd.readouterr()).lower()
    assert pydicom.dcmread(tmp_path / "seg.dcm").PatientName == "Secret without caret"


@pytest.mark.parametrize(
    "structures, words",
    [
        ({}, "none"),
        ({0: "background"}, "label id 0"),
        ({2**16: "far"}, "label id 65536"),
        ({1: ""}, "name ''"),
        ({1: "a" * 65}, "1 to 64"),
        ({1: "a\\b"}, "backslash"),
        ({1: "a\nb"}, "name"),
    ],
)
def test_structures_that_cannot_be_written_are_refused(structures, words, series, draw_labels, tmp_path):
    with pytest.raises(ConfigError, match=words):
        write_segmentation(draw_labels(series), series, tmp_path / "seg.dcm", structures)


def test_the_folder_of_the_series_stays_one_series(series, draw_labels):
    with pytest.raises(ConfigError, match="Choose another folder"):
        write_segmentation(draw_labels(series), series, series / "seg.dcm", STRUCTURES)


def test_the_way_to_highdicom_is_told_where_it_is_missing(series, draw_labels, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "highdicom", None)
    with pytest.raises(ConfigError, match=r"pip install 'medssl\[dicom\]'"):
        write_segmentation(draw_labels(series), series, tmp_path / "seg.dcm", STRUCTURES)


BAD_FILES = {
    "another type": ({"SegmentationType": "FRACTIONAL"}, "FRACTIONAL, expected Segmentation Storage"),
    "no segments": ({"SegmentSequence": None}, "incomplete"),
    "no places": ({"PerFrameFunctionalGroupsSequence": []}, "0 of them described"),
}


@pytest.mark.parametrize("faults, words", BAD_FILES.values(), ids=BAD_FILES)
def test_file_that_is_no_segmentation_is_refused_by_name(faults, words, series, draw_labels, edit_file, tmp_path):
    path = tmp_path / "seg.dcm"
    write_segmentation(draw_labels(series), series, path, STRUCTURES)
    edit_file(path, **faults)
    with pytest.raises(DataError) as caught:
        read_segmentation(path)
    assert str(path) in str(caught.value) and words in str(caught.value)


DAMAGE = {
    "cut off": (lambda p: p.write_bytes(p.read_bytes()[:-8]), "bytes of pixels for 10 frames"),
    "text": (lambda p: p.write_text("not DICOM"), "cannot be parsed"),
    "missing": (lambda p: p.unlink(), "not found"),
}


@pytest.mark.parametrize("change, words", DAMAGE.values(), ids=DAMAGE)
def test_damaged_file_is_refused_by_name(change, words, series, draw_labels, tmp_path):
    path = tmp_path / "seg.dcm"
    write_segmentation(draw_labels(series), series, path, STRUCTURES)
    change(path)
    with pytest.raises(DataError) as caught:
        read_segmentation(path)
    assert str(path) in str(caught.value) and words in str(caught.value)


BAD_FRAMES = {
    "uneven": (2, lambda i: 0.7 * (i == 2), "slices every 2.000 mm"),
    "tilted": (1, lambda i: 0.5 * i, "not parallel"),
    "nowhere": (2, lambda i: float("nan"), "not parallel"),
    "far away": (2, lambda i: 2e6 * (i == 2), "slices every 2.000 mm"),
}


@pytest.mark.parametrize("axis, mm, words", BAD_FRAMES.values(), ids=BAD_FRAMES)
def test_frames_that_are_no_grid_are_refused(axis, mm, words, write_series, draw_labels, move_frames, tmp_path):
    series = write_series(7)
    write_segmentation(draw_labels(series), series, tmp_path / "seg.dcm", STRUCTURES)
    move_frames(tmp_path / "seg.dcm", axis, mm)
    with pytest.raises(DataError, match=words):
        read_segmentation(tmp_path / "seg.dcm")


def test_segments_that_overlap_are_refused(series, draw_labels, edit_file, tmp_path):
    def onto_one_place(dataset):
        for frame in dataset.PerFrameFunctionalGroupsSequence:
            frame.PlanePositionSequence[0].ImagePositionPatient = [-10, 20, 30]

    write_segmentation(draw_labels(series), series, tmp_path / "seg.dcm", STRUCTURES)
    edit_file(tmp_path / "seg.dcm", onto_one_place)
    with pytest.raises(DataError, match="overlaps another one"):
        read_segmentation(tmp_path / "seg.dcm")
