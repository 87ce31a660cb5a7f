"""A label map written as DICOM SEG comes back voxel for voxel on the grid of its series, names and colours with it."""

import itertools

import nibabel as nib
import numpy as np
import pydicom
import pytest

from medssl.data.dicom_seg import SegmentStyle, open_segmentation, read_segmentation, reordered, write_segmentation
from medssl.data.layouts import find_folder
from medssl.data.validate import check_cases
from medssl.data.volumes import read_header, read_volume
from medssl.data.voxel_grid import Volume

highdicom = pytest.importorskip("highdicom")

STRUCTURES = {2: "kidney", 7: "lesion"}


def test_labels_in_any_of_48_orientations_come_back_voxel_for_voxel(orientation, series, draw_labels, turned, tmp_path):
    labels = draw_labels(series)
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
def test_scans_in_all_24_directions_keep_their_labels(row, column, write_series, draw_labels, turned, tmp_path):
    """Rows, columns and slices of a DICOM series are right-handed: 24 of the 48. The labels given run along RAS."""
    series = write_series(7, axes=(row, column))
    labels = draw_labels(series)
    given = turned(labels, nib.io_orientation(labels.affine))
    assert nib.aff2axcodes(given.affine) == ("R", "A", "S")
    write_segmentation(given, series, tmp_path / "seg.dcm", STRUCTURES)
    found = read_segmentation(tmp_path / "seg.dcm")
    np.testing.assert_array_equal(found.array, labels.array)
    np.testing.assert_allclose(found.affine, labels.affine, atol=1e-9)


def test_highdicom_finds_every_segment_on_the_slices_of_the_series(series, draw_labels, tmp_path):
    labels = draw_labels(series)
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


def test_patient_study_and_frame_of_reference_are_those_of_the_series(write_series, draw_labels, tmp_path):
    series = write_series(PatientName="Jörg Müller", SpecificCharacterSet="ISO_IR 100", PatientSex="W")
    write_segmentation(draw_labels(series), series, tmp_path / "seg.dcm", {2: "Niere größer", 7: "病変"})
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


def test_labels_drawn_by_hand_say_so(series, draw_labels, tmp_path):
    write_segmentation(draw_labels(series), series, tmp_path / "seg.dcm", STRUCTURES, algorithm=None)
    assert {item.SegmentAlgorithmType for item in pydicom.dcmread(tmp_path / "seg.dcm").SegmentSequence} == {"MANUAL"}


def test_structure_without_a_voxel_keeps_its_segment_and_has_no_frame(series, draw_labels, tmp_path):
    labels = draw_labels(series)
    write_segmentation(labels, series, tmp_path / "seg.dcm", {**STRUCTURES, 3: "cyst"})
    found = open_segmentation(tmp_path / "seg.dcm")
    assert found.structures == {2: "kidney", 3: "cyst", 7: "lesion"}
    assert {label_id for _, label_id in found.frames} == {2, 7}
    np.testing.assert_array_equal(found.voxels(), labels.array)


def test_empty_label_map_comes_back_empty_on_the_whole_grid(series, draw_labels, tmp_path, caplog):
    labels = draw_labels(series)
    write_segmentation(Volume(labels.array * 0, labels.affine), series, tmp_path / "seg.dcm", STRUCTURES)
    found = read_segmentation(tmp_path / "seg.dcm")
    assert found.shape == labels.shape and not found.array.any()
    np.testing.assert_allclose(found.affine, labels.affine, atol=1e-9)
    assert len(pydicom.dcmread(tmp_path / "seg.dcm").ReferencedSeriesSequence[0].ReferencedInstanceSequence) == 7
    assert not caplog.records


@pytest.mark.parametrize("index", range(7))
def test_one_labelled_slice_comes_back_in_its_place(index, series, draw_labels, tmp_path):
    labels = draw_labels(series)
    labels.array[:] = 0
    labels.array[1, 2, index] = 7
    write_segmentation(labels, series, tmp_path / "seg.dcm", STRUCTURES)
    found = read_segmentation(tmp_path / "seg.dcm")
    np.testing.assert_array_equal(found.array, labels.array)
    np.testing.assert_allclose(found.affine, labels.affine, atol=1e-9)


def test_more_than_255_structures_keep_their_ids(write_series, tmp_path):
    series = write_series(30)
    header = read_header(series)
    ids = np.arange(1, 361) * 100
    labels = Volume(np.random.default_rng(0).permutation(ids).reshape(header.shape).astype(np.int32), header.affine)
    write_segmentation(labels, series, tmp_path / "seg.dcm", {int(i): f"structure {i}" for i in ids})
    found = read_segmentation(tmp_path / "seg.dcm")
    assert found.array.dtype == np.uint16
    np.testing.assert_array_equal(found.array, labels.array)


@pytest.mark.parametrize("rows, columns", [(1, 8), (3, 3), (2, 5), (1, 11), (3, 4), (1, 13), (2, 7), (5, 3)])
def test_slices_of_any_number_of_pixels_are_packed_and_unpacked(rows, columns, write_series, draw_labels, tmp_path):
    """Of n pixels modulo 8 from 0 to 7: frames do not begin with a byte."""
    series = write_series(20, Rows=rows, Columns=columns)
    labels = draw_labels(series)
    write_segmentation(labels, series, tmp_path / "seg.dcm", STRUCTURES)
    np.testing.assert_array_equal(read_segmentation(tmp_path / "seg.dcm").array, labels.array)


def test_one_slice_is_a_series_too(write_series, tmp_path):
    series = write_series(1)
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
def test_small_faults_of_a_series_do_not_move_its_labels(edit, write_series, draw_labels, tmp_path):
    series = write_series(7, edit=edit[1])
    labels = draw_labels(series)
    write_segmentation(labels, series, tmp_path / "seg.dcm", STRUCTURES)
    found = read_segmentation(tmp_path / "seg.dcm")
    np.testing.assert_array_equal(found.array, labels.array)
    np.testing.assert_allclose(found.affine, labels.affine, atol=1e-9)


def test_sop_uids_are_taken_from_the_file_meta_where_an_anonymiser_emptied_them(write_series, draw_labels, tmp_path):
    series = write_series()
    for file in series.iterdir():
        dataset = pydicom.dcmread(file)
        dataset.SOPClassUID = dataset.SOPInstanceUID = ""
        pydicom.dcmwrite(file, dataset, enforce_file_format=False)
    labels = draw_labels(series)
    write_segmentation(labels, series, tmp_path / "seg.dcm", STRUCTURES)
    np.testing.assert_array_equal(read_segmentation(tmp_path / "seg.dcm").array, labels.array)


def test_file_of_another_program_gives_its_segment_numbers_in_their_place(series, draw_labels, edit_file, tmp_path):
    """No label ids, no list of slices, no slice spacing: the slices that have frames, where they lie."""

    def foreign(dataset):
        dataset.pop("ReferencedSeriesSequence", None)
        dataset.SharedFunctionalGroupsSequence[0].PixelMeasuresSequence[0].pop("SpacingBetweenSlices", None)
        for item in dataset.SegmentSequence:
            item.pop("SegmentDescription", None)

    labels = draw_labels(series)
    write_segmentation(labels, series, tmp_path / "seg.dcm", STRUCTURES)
    edit_file(tmp_path / "seg.dcm", foreign)
    found = read_segmentation(tmp_path / "seg.dcm")
    np.testing.assert_array_equal(found.array, np.array([0, 0, 1, 0, 0, 0, 0, 2])[labels.array[..., 1:-1]])
    np.testing.assert_allclose(found.affine, labels.affine @ [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 1]])


def test_segmentation_is_read_as_a_volume_and_as_the_label_of_a_case(series, draw_labels, tmp_path):
    labels = draw_labels(series)
    (tmp_path / "set" / "images").mkdir(parents=True)
    series = series.rename(tmp_path / "set" / "images" / "case")
    path = tmp_path / "set" / "labels" / "case" / "seg.dcm"
    write_segmentation(labels, series, path, STRUCTURES)
    np.testing.assert_array_equal(read_volume(path).array, labels.array)
    assert read_volume(path).array.dtype == read_header(path).dtype == np.uint8
    (case,) = find_folder(tmp_path / "set")
    assert case["label"] == str(path.parent)
    assert check_cases([case | {"role": "labelled"}], label_ids=[2, 7], cache_file=tmp_path / "check.json") == []


def test_style_names_the_series_codes_the_segments_and_colours_them(series, draw_labels, tmp_path):
    style = SegmentStyle(7, "Doubts", ("1", "99TEST", "category"), ("2", "99TEST", "kind"), {7: (255, 0, 0)})
    write_segmentation(draw_labels(series), series, tmp_path / "seg.dcm", STRUCTURES, style=style)
    found = highdicom.seg.segread(tmp_path / "seg.dcm")
    assert (found.SeriesNumber, found.SeriesDescription) == (7, "Doubts")
    kidney, lesion = found.SegmentSequence
    assert kidney.segmented_property_category.meaning == lesion.segmented_property_category.meaning == "category"
    assert kidney.segmented_property_type.value == "2" and "RecommendedDisplayCIELabValue" not in kidney
    colour = highdicom.color.CIELabColor.from_dicom_value(lesion.RecommendedDisplayCIELabValue)
    np.testing.assert_allclose(colour.to_rgb(), (255, 0, 0), atol=1)
