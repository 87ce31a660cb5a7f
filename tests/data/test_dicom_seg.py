"""A label map written as DICOM SEG comes back voxel for voxel on the grid of its series, or is refused by name."""

import itertools
import logging
import sys
import warnings

import nibabel as nib
import numpy as np
import pydicom
import pytest
from pydicom.uid import generate_uid

from medssl.data.dicom_seg import open_segmentation, read_segmentation, reordered, write_segmentation
from medssl.data.geometry import Volume
from medssl.data.layouts import find_folder
from medssl.data.validate import check_cases
from medssl.data.volumes import read_header, read_volume
from medssl.errors import ConfigError, DataError

highdicom = pytest.importorskip("highdicom")

STRUCTURES = {2: "kidney", 7: "lesion"}
STUDY, FRAME_OF_REFERENCE = generate_uid(), generate_uid()
ORIENTATIONS = [
    np.column_stack([order, signs])
    for order in itertools.permutations(range(3))
    for signs in itertools.product((1, -1), repeat=3)
]


def with_uids(dataset, index):
    dataset.StudyInstanceUID, dataset.FrameOfReferenceUID = STUDY, FRAME_OF_REFERENCE


def placed(along_row, along_column, step_mm=1.5):
    """Edit that turns the series: slices of 3 rows and 4 columns, step_mm apart along the normal."""

    def edit(dataset, index):
        with_uids(dataset, index)
        normal = np.cross(along_row, along_column)
        dataset.ImageOrientationPatient = [*map(float, along_row), *map(float, along_column)]
        dataset.ImagePositionPatient = [round(v, 10) for v in np.array([3.0, -4.0, 5.0]) + step_mm * index * normal]

    return edit


def also(**elements):
    def edit(dataset, index):
        with_uids(dataset, index)
        for name, value in elements.items():
            setattr(dataset, name, value)

    return edit


def without(name):
    def edit(dataset, index):
        with_uids(dataset, index)
        delattr(dataset, name)

    return edit


def random_labels(series, seed=0):
    """Labels 0, 2 and 7 on the grid of the series; its first and last slice are empty."""
    header = read_header(series)
    array = np.random.default_rng(seed).choice([0, 2, 7], header.shape).astype(np.uint8)
    array[..., [0, -1]] = 0
    return Volume(array, header.affine)


def turned(volume, orientation):
    """The same voxels in the same places, axes exchanged and flipped by nibabel: rows (new axis, direction)."""
    affine = volume.affine @ nib.orientations.inv_ornt_aff(orientation, volume.shape)
    return Volume(nib.apply_orientation(volume.array, orientation), affine)


@pytest.fixture
def series(write_series):
    return write_series(7, edit=placed([0.8, 0.6, 0.0], [0.0, 0.0, -1.0]))


@pytest.mark.parametrize(
    "orientation", ORIENTATIONS, ids=["".join(nib.orientations.ornt2axcodes(o)) for o in ORIENTATIONS]
)
def test_labels_in_any_of_48_orientations_come_back_voxel_for_voxel(orientation, series, tmp_path):
    labels = random_labels(series)
    given = turned(labels, orientation)
    write_segmentation(given, series, tmp_path / "seg.dcm", STRUCTURES)
    found = read_segmentation(tmp_path / "seg.dcm")
    np.testing.assert_array_equal(found.array, labels.array)
    np.testing.assert_allclose(found.affine, labels.affine, atol=1e-9)
    back = reordered(found, given)
    np.testing.assert_array_equal(back.array, given.array)
    np.testing.assert_allclose(back.affine, given.affine, atol=1e-9)


SCANNED = [
    (row, column)
    for row, column in itertools.product([*np.eye(3, dtype=int).tolist(), *(-np.eye(3, dtype=int)).tolist()], repeat=2)
    if np.dot(row, column) == 0
]


@pytest.mark.parametrize("row, column", SCANNED, ids=[f"{r}{c}" for r, c in SCANNED])
def test_scans_in_all_24_directions_keep_their_labels(row, column, write_series, tmp_path):
    """Rows, columns and slices of a DICOM series are right-handed: 24 of the 48. The labels given run along RAS."""
    series = write_series(7, edit=placed(row, column))
    labels = random_labels(series)
    given = turned(labels, nib.io_orientation(labels.affine))
    assert nib.aff2axcodes(given.affine) == ("R", "A", "S")
    write_segmentation(given, series, tmp_path / "seg.dcm", STRUCTURES)
    found = read_segmentation(tmp_path / "seg.dcm")
    np.testing.assert_array_equal(found.array, labels.array)
    np.testing.assert_allclose(found.affine, labels.affine, atol=1e-9)


def test_highdicom_finds_every_segment_on_the_slices_of_the_series(series, tmp_path):
    labels = random_labels(series)
    write_segmentation(labels, series, tmp_path / "seg.dcm", STRUCTURES)
    segmentation = highdicom.seg.segread(tmp_path / "seg.dcm")
    slices = sorted(series.iterdir(), reverse=True)  # names run against the order
    uids = [pydicom.dcmread(file).SOPInstanceUID for file in slices]
    stacked = segmentation.get_pixels_by_source_instance(
        uids, ignore_spatial_locations=False, assert_missing_frames_are_empty=True
    )
    for number, label_id in enumerate(STRUCTURES):
        np.testing.assert_array_equal(stacked[..., number].T, labels.array == label_id)
    assert [item.SegmentLabel for item in segmentation.SegmentSequence] == list(STRUCTURES.values())
    assert [item.SegmentAlgorithmType for item in segmentation.SegmentSequence] == ["AUTOMATIC"] * 2
    volume = segmentation.get_volume(combine_segments=True)  # the five slices that are not empty
    lps_of_first = np.diag([-1, -1, 1, 1]) @ labels.affine @ [0, 0, 1, 1]
    corners = [volume.affine @ [*index, 1] for index in itertools.product((0, 4), (0, 2), (0, 3))]
    assert np.abs(np.array(corners) - lps_of_first).max(axis=1).min() < 1e-6
    np.testing.assert_array_equal(
        np.bincount(volume.array.ravel())[1:], [(labels.array == i).sum() for i in STRUCTURES]
    )


def test_patient_study_and_frame_of_reference_are_those_of_the_series(write_series, tmp_path):
    series = write_series(edit=also(PatientName="Jörg Müller", SpecificCharacterSet="ISO_IR 100", PatientSex="W"))
    write_segmentation(random_labels(series), series, tmp_path / "seg.dcm", {2: "Niere größer", 7: "病変"})
    found, source = pydicom.dcmread(tmp_path / "seg.dcm"), pydicom.dcmread(series / "001.dcm")
    for name in (
        "PatientName",
        "PatientID",
        "PatientBirthDate",
        "PatientSex",
        "StudyInstanceUID",
        "FrameOfReferenceUID",
    ):
        assert found[name].value == source[name].value
    assert found.SeriesInstanceUID != source.SeriesInstanceUID
    assert open_segmentation(tmp_path / "seg.dcm").structures == {2: "Niere größer", 7: "病変"}


def test_labels_drawn_by_hand_say_so(series, tmp_path):
    write_segmentation(random_labels(series), series, tmp_path / "seg.dcm", STRUCTURES, algorithm=None)
    assert {item.SegmentAlgorithmType for item in pydicom.dcmread(tmp_path / "seg.dcm").SegmentSequence} == {"MANUAL"}


def test_structure_without_a_voxel_keeps_its_segment_and_has_no_frame(series, tmp_path):
    labels = random_labels(series)
    write_segmentation(labels, series, tmp_path / "seg.dcm", {**STRUCTURES, 3: "cyst"})
    found = open_segmentation(tmp_path / "seg.dcm")
    assert found.structures == {2: "kidney", 3: "cyst", 7: "lesion"}
    assert {label_id for _, label_id in found.frames} == {2, 7}
    np.testing.assert_array_equal(found.voxels(), labels.array)


def test_empty_label_map_comes_back_empty_on_the_whole_grid(series, tmp_path, caplog):
    labels = random_labels(series)
    write_segmentation(Volume(labels.array * 0, labels.affine), series, tmp_path / "seg.dcm", STRUCTURES)
    found = read_segmentation(tmp_path / "seg.dcm")
    assert found.shape == labels.shape and not found.array.any()
    np.testing.assert_allclose(found.affine, labels.affine, atol=1e-9)
    assert len(pydicom.dcmread(tmp_path / "seg.dcm").ReferencedSeriesSequence[0].ReferencedInstanceSequence) == 7
    assert not caplog.records


@pytest.mark.parametrize("index", range(7))
def test_one_labelled_slice_comes_back_in_its_place(index, series, tmp_path):
    labels = random_labels(series)
    labels.array[:] = 0
    labels.array[1, 2, index] = 7
    write_segmentation(labels, series, tmp_path / "seg.dcm", STRUCTURES)
    found = read_segmentation(tmp_path / "seg.dcm")
    np.testing.assert_array_equal(found.array, labels.array)
    np.testing.assert_allclose(found.affine, labels.affine, atol=1e-9)


def test_more_than_255_structures_keep_their_ids(write_series, tmp_path):
    series = write_series(30, edit=with_uids)
    header = read_header(series)
    ids = np.arange(1, 361) * 100
    labels = Volume(np.random.default_rng(0).permutation(ids).reshape(header.shape).astype(np.int32), header.affine)
    write_segmentation(labels, series, tmp_path / "seg.dcm", {int(i): f"structure {i}" for i in ids})
    found = read_segmentation(tmp_path / "seg.dcm")
    assert found.array.dtype == np.uint16
    np.testing.assert_array_equal(found.array, labels.array)


@pytest.mark.parametrize("rows, columns", [(1, 8), (3, 3), (2, 5), (1, 11), (3, 4), (1, 13), (2, 7), (5, 3)])
def test_slices_of_any_number_of_pixels_are_packed_and_unpacked(rows, columns, write_series, tmp_path):
    """Of n pixels modulo 8 from 0 to 7: frames do not begin with a byte."""
    series = write_series(20, edit=also(Rows=rows, Columns=columns))
    labels = random_labels(series)
    write_segmentation(labels, series, tmp_path / "seg.dcm", STRUCTURES)
    np.testing.assert_array_equal(read_segmentation(tmp_path / "seg.dcm").array, labels.array)


def test_one_slice_is_a_series_too(write_series, tmp_path):
    series = write_series(1, edit=with_uids)
    labels = Volume(np.full((4, 3, 1), 2, np.uint8), read_header(series).affine)
    write_segmentation(labels, series, tmp_path / "seg.dcm", STRUCTURES)
    found = read_segmentation(tmp_path / "seg.dcm")
    np.testing.assert_array_equal(found.array, labels.array)
    np.testing.assert_allclose(found.affine, labels.affine, atol=1e-9)


@pytest.mark.parametrize(
    "edit",
    {
        "positions are rounded": lambda dataset, index: setattr(
            dataset, "ImagePositionPatient", [-10, 20, 30 + 2 * index + 0.004 * (index % 3)]
        ),
        "directions are rounded": lambda dataset, index: setattr(
            dataset, "ImageOrientationPatient", [1, 0, 1e-5 * index, 0, 1, 0]
        ),
        "SpacingBetweenSlices is wrong": lambda dataset, index: setattr(dataset, "SpacingBetweenSlices", 5),
        "SliceThickness is missing": lambda dataset, index: delattr(dataset, "SliceThickness"),
    }.items(),
    ids=lambda item: item[0],
)
def test_small_faults_of_a_series_do_not_move_its_labels(edit, write_series, tmp_path):
    def both(dataset, index):
        with_uids(dataset, index)
        edit[1](dataset, index)

    series = write_series(7, edit=both)
    labels = random_labels(series)
    write_segmentation(labels, series, tmp_path / "seg.dcm", STRUCTURES)
    found = read_segmentation(tmp_path / "seg.dcm")
    np.testing.assert_array_equal(found.array, labels.array)
    np.testing.assert_allclose(found.affine, labels.affine, atol=1e-9)


def test_sop_uids_are_taken_from_the_file_meta_where_an_anonymiser_emptied_them(write_series, tmp_path):
    series = write_series(edit=with_uids)
    for file in series.iterdir():
        dataset = pydicom.dcmread(file)
        dataset.SOPClassUID = dataset.SOPInstanceUID = ""
        pydicom.dcmwrite(file, dataset, enforce_file_format=False)
    labels = random_labels(series)
    write_segmentation(labels, series, tmp_path / "seg.dcm", STRUCTURES)
    np.testing.assert_array_equal(read_segmentation(tmp_path / "seg.dcm").array, labels.array)


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
def test_labels_that_do_not_fit_are_refused_by_name(change, words, write_series, tmp_path):
    series = write_series(7, edit=with_uids)
    labels = random_labels(series)
    with pytest.raises(DataError) as caught:
        write_segmentation(change(labels), series, tmp_path / "seg.dcm", STRUCTURES)
    assert str(tmp_path / "seg.dcm") in str(caught.value)
    assert words in str(caught.value)
    assert not (tmp_path / "seg.dcm").exists()


BAD_SERIES = {
    "no study": (without("StudyInstanceUID"), "no StudyInstanceUID, expected one"),
    "no frame of reference": (without("FrameOfReferenceUID"), "no FrameOfReferenceUID"),
    "two studies": (
        lambda dataset, i: (with_uids(dataset, i), setattr(dataset, "StudyInstanceUID", generate_uid())),
        "another study",
    ),
    "tiny": (also(Rows=1, Columns=4, PixelData=b"\0" * 8), "at least 8 pixels"),
    "no scan": (also(SOPClassUID="1.2.3"), "highdicom refuses the series"),
}


@pytest.mark.parametrize("edit, words", BAD_SERIES.values(), ids=BAD_SERIES)
def test_series_that_cannot_be_referred_to_is_refused_without_patient_data(edit, words, write_series, tmp_path):
    series = write_series(7, edit=edit)
    labels = random_labels(series)
    with pytest.raises(DataError) as caught:
        write_segmentation(labels, series, tmp_path / "seg.dcm", STRUCTURES)
    text = str(caught.value)
    assert str(series) in text and words in text
    assert not [secret for secret in ("Secret", "SECRET", "1901") if secret in text]


def test_odd_patient_data_is_written_to_no_log(write_series, tmp_path, caplog, capfd):
    odd = also(PatientName="Secret without caret", PatientSex="Secret", StudyTime="Secret", PatientBirthDate="Secret")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        series = write_series(edit=odd)
    labels = random_labels(series)
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
def test_structures_that_cannot_be_written_are_refused(structures, words, series, tmp_path):
    with pytest.raises(ConfigError, match=words):
        write_segmentation(random_labels(series), series, tmp_path / "seg.dcm", structures)


def test_the_folder_of_the_series_stays_one_series(series):
    with pytest.raises(ConfigError, match="Choose another folder"):
        write_segmentation(random_labels(series), series, series / "seg.dcm", STRUCTURES)


def test_the_way_to_highdicom_is_told_where_it_is_missing(series, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "highdicom", None)
    with pytest.raises(ConfigError, match=r"pip install 'medssl\[dicom\]'"):
        write_segmentation(random_labels(series), series, tmp_path / "seg.dcm", STRUCTURES)


def break_file(path, **elements):
    dataset = pydicom.dcmread(path)
    for name, value in elements.items():
        if value is None:
            delattr(dataset, name)
        else:
            setattr(dataset, name, value)
    dataset.save_as(path)


BAD_FILES = {
    "another type": (
        lambda p: break_file(p, SegmentationType="FRACTIONAL"),
        "FRACTIONAL, expected Segmentation Storage",
    ),
    "no segments": (lambda p: break_file(p, SegmentSequence=None), "incomplete"),
    "no places": (lambda p: break_file(p, PerFrameFunctionalGroupsSequence=[]), "0 of them described"),
    "cut off": (lambda p: p.write_bytes(p.read_bytes()[:-8]), "bytes of pixels for 10 frames"),
    "text": (lambda p: p.write_text("not DICOM"), "cannot be parsed"),
    "missing": (lambda p: p.unlink(), "not found"),
}


@pytest.mark.parametrize("change, words", BAD_FILES.values(), ids=BAD_FILES)
def test_damaged_file_is_refused_by_name(change, words, series, tmp_path):
    path = tmp_path / "seg.dcm"
    write_segmentation(random_labels(series), series, path, STRUCTURES)
    change(path)
    with pytest.raises(DataError) as caught:
        read_segmentation(path)
    assert str(path) in str(caught.value) and words in str(caught.value)


def edit_frames(path, edit):
    dataset = pydicom.dcmread(path)
    for index, frame in enumerate(dataset.PerFrameFunctionalGroupsSequence):
        edit(dataset, frame, index)
    dataset.save_as(path)


def move_frame(axis, mm):
    def edit(dataset, frame, index):
        position = frame.PlanePositionSequence[0].ImagePositionPatient
        position[axis] = float(position[axis]) + mm(index)

    return edit


BAD_FRAMES = {
    "uneven": (move_frame(2, lambda i: 0.7 * (i == 2)), "slices every 2.000 mm"),
    "tilted": (move_frame(1, lambda i: 0.5 * i), "not parallel"),
    "nowhere": (move_frame(2, lambda i: float("nan")), "not parallel"),
    "far away": (move_frame(2, lambda i: 2e6 * (i == 2)), "slices every 2.000 mm"),
    "overlapping": (
        lambda dataset, frame, i: setattr(frame.PlanePositionSequence[0], "ImagePositionPatient", [-10, 20, 30]),
        "overlaps another one",
    ),
}


@pytest.mark.parametrize("edit, words", BAD_FRAMES.values(), ids=BAD_FRAMES)
def test_frames_that_are_no_label_map_are_refused(edit, words, write_series, tmp_path):
    series = write_series(7, edit=with_uids)
    write_segmentation(random_labels(series), series, tmp_path / "seg.dcm", STRUCTURES)
    edit_frames(tmp_path / "seg.dcm", edit)
    with pytest.raises(DataError, match=words):
        read_segmentation(tmp_path / "seg.dcm")


def test_file_of_another_program_gives_its_segment_numbers_in_their_place(series, tmp_path):
    """No label ids, no list of slices, no slice spacing: the slices that have frames, where they lie."""

    def foreign(dataset, frame, index):
        dataset.pop("ReferencedSeriesSequence", None)
        dataset.SharedFunctionalGroupsSequence[0].PixelMeasuresSequence[0].pop("SpacingBetweenSlices", None)
        for item in dataset.SegmentSequence:
            item.pop("SegmentDescription", None)

    labels = random_labels(series)
    write_segmentation(labels, series, tmp_path / "seg.dcm", STRUCTURES)
    edit_frames(tmp_path / "seg.dcm", foreign)
    found = read_segmentation(tmp_path / "seg.dcm")
    np.testing.assert_array_equal(found.array, np.array([0, 0, 1, 0, 0, 0, 0, 2])[labels.array[..., 1:-1]])
    np.testing.assert_allclose(found.affine, labels.affine @ [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 1]])


def test_segmentation_is_read_as_a_volume_and_as_the_label_of_a_case(series, tmp_path):
    labels = random_labels(series)
    (tmp_path / "set" / "images").mkdir(parents=True)
    series = series.rename(tmp_path / "set" / "images" / "case")
    path = tmp_path / "set" / "labels" / "case" / "seg.dcm"
    write_segmentation(labels, series, path, STRUCTURES)
    np.testing.assert_array_equal(read_volume(path).array, labels.array)
    assert read_volume(path).array.dtype == read_header(path).dtype == np.uint8
    (case,) = find_folder(tmp_path / "set")
    assert case["label"] == str(path.parent)
    assert check_cases([case | {"role": "labelled"}], label_ids=[2, 7], cache_file=tmp_path / "check.json") == []
