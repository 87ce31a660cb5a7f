"""A map written as DICOM Parametric Map comes back float for float on the grid of its series, or is refused by name."""

import logging
import sys
import warnings

import numpy as np
import pydicom
import pytest
from pydicom.uid import generate_uid

from medssl.core.errors import ConfigError, DataError
from medssl.data.dicom_map import Quantity, open_parametric_map, read_parametric_map, write_parametric_map
from medssl.data.volumes import read_header, read_volume
from medssl.data.voxel_grid import Volume, reordered

highdicom = pytest.importorskip("highdicom")


def entropy_on(series):
    """Random floats of every size that float32 has, none of which has a short decimal form."""
    header = read_header(series)
    rng = np.random.default_rng(0)
    array = (rng.random(header.shape) * 10.0 ** rng.integers(-40, 1, header.shape)).astype(np.float32)
    return Volume(array, header.affine)


def assert_same(found, expected):
    assert found.array.dtype == np.float32
    np.testing.assert_array_equal(found.array.view(np.uint32), np.asfortranarray(expected.array).view(np.uint32))
    np.testing.assert_allclose(found.affine, expected.affine, atol=1e-9)


def test_map_in_any_of_48_orientations_comes_back_float_for_float(orientation, series, turned, tmp_path):
    entropy = entropy_on(series)
    given = turned(entropy, orientation)
    write_parametric_map(given, series, tmp_path / "map.dcm")
    found = read_parametric_map(tmp_path / "map.dcm")
    assert_same(found, entropy)
    assert_same(reordered(found, given), given)


@pytest.mark.parametrize("count, elements", [(1, {}), (7, {}), (5, {"Rows": 1, "Columns": 1})])
def test_one_slice_and_one_pixel_are_a_map_too(count, elements, write_series, tmp_path):
    series = write_series(count, **elements)
    entropy = entropy_on(series)
    write_parametric_map(entropy, series, tmp_path / "map.dcm")
    assert_same(read_parametric_map(tmp_path / "map.dcm"), entropy)


SMALL_FAULTS = {
    "positions are rounded": lambda dataset, index: setattr(
        dataset, "ImagePositionPatient", [-10, 20, 30 + 2 * index + 0.004 * (index % 3)]
    ),
    "SpacingBetweenSlices is wrong": lambda dataset, index: setattr(dataset, "SpacingBetweenSlices", 5),
}


@pytest.mark.parametrize("edit", SMALL_FAULTS.values(), ids=SMALL_FAULTS)
def test_small_faults_of_a_series_do_not_move_its_map(edit, write_series, tmp_path):
    series = write_series(7, edit=edit)
    entropy = entropy_on(series)
    write_parametric_map(entropy, series, tmp_path / "map.dcm")
    assert_same(read_parametric_map(tmp_path / "map.dcm"), entropy)


def test_highdicom_reads_the_same_bits_in_the_same_places(series, tmp_path):
    entropy = entropy_on(series)
    write_parametric_map(entropy, series, tmp_path / "map.dcm", highest=np.log2(3))
    found = highdicom.pm.ParametricMap.from_file(tmp_path / "map.dcm")
    volume = found.get_volume(apply_real_world_transform=True)
    affine = np.diag([-1, -1, 1, 1]) @ volume.affine
    assert_same(reordered(Volume(volume.array.astype(np.float32), affine), entropy), entropy)
    mapping = found.SharedFunctionalGroupsSequence[0].RealWorldValueMappingSequence[0]
    unit, quantity = mapping.MeasurementUnitsCodeSequence[0], mapping.QuantityDefinitionSequence[0]
    assert (unit.CodeValue, unit.CodingSchemeDesignator) == ("bit", "UCUM")
    assert quantity.ConceptCodeSequence[0].CodeMeaning == "Predictive entropy"
    window = found.SharedFunctionalGroupsSequence[0].FrameVOILUTSequence[0]
    assert (float(window.WindowCenter), float(window.WindowWidth)) == pytest.approx((np.log2(3) / 2, np.log2(3)))


def test_every_frame_refers_to_its_slice_and_the_file_to_all(series, tmp_path):
    entropy = entropy_on(series)
    write_parametric_map(entropy, series, tmp_path / "map.dcm")
    found = pydicom.dcmread(tmp_path / "map.dcm")
    slices = [pydicom.dcmread(file) for file in sorted(series.iterdir(), reverse=True)]  # names run against the order
    (listed,) = found.ReferencedSeriesSequence
    assert listed.SeriesInstanceUID == slices[0].SeriesInstanceUID
    assert {item.ReferencedSOPInstanceUID for item in listed.ReferencedInstanceSequence} == {
        source.SOPInstanceUID for source in slices
    }
    pixels = np.frombuffer(found.FloatPixelData, "<f4").reshape(7, 3, 4)
    of_source = {
        frame.DerivationImageSequence[0].SourceImageSequence[0].ReferencedSOPInstanceUID: (values, frame)
        for values, frame in zip(pixels, found.PerFrameFunctionalGroupsSequence, strict=True)
    }
    for index, source in enumerate(slices):
        values, frame = of_source[source.SOPInstanceUID]
        np.testing.assert_array_equal(values.T, entropy.array[..., index])
        np.testing.assert_allclose(frame.PlanePositionSequence[0].ImagePositionPatient, source.ImagePositionPatient)


def test_patient_study_and_frame_of_reference_are_those_of_the_series(write_series, tmp_path):
    series = write_series(PatientName="Jörg Müller", SpecificCharacterSet="ISO_IR 100", PatientSex="W")
    write_parametric_map(entropy_on(series), series, tmp_path / "map.dcm")
    found, source = pydicom.dcmread(tmp_path / "map.dcm"), pydicom.dcmread(series / "001.dcm")
    for name in ("PatientName", "PatientID", "PatientBirthDate", "PatientSex", "StudyInstanceUID"):
        assert found[name].value == source[name].value
    assert found.FrameOfReferenceUID == source.FrameOfReferenceUID
    assert found.SeriesInstanceUID != source.SeriesInstanceUID


def test_another_quantity_is_named_as_such(series, tmp_path):
    quantity = Quantity(("1", "99TEST", "Lag"), ("s", "UCUM", "second"), "LAG", series_number=12)
    write_parametric_map(entropy_on(series), series, tmp_path / "map.dcm", quantity=quantity)
    found = pydicom.dcmread(tmp_path / "map.dcm")
    assert (found.SeriesDescription, found.SeriesNumber, found.ContentLabel) == ("Lag (second)", 12, "LAG")


def test_numbers_of_another_program_are_scaled_as_it_says(series, edit_file, tmp_path):
    def scale(dataset):
        mapping = dataset.SharedFunctionalGroupsSequence[0].RealWorldValueMappingSequence[0]
        mapping.RealWorldValueSlope, mapping.RealWorldValueIntercept = 2.0, 1.0

    entropy = entropy_on(series)
    write_parametric_map(entropy, series, tmp_path / "map.dcm")
    edit_file(tmp_path / "map.dcm", scale)
    np.testing.assert_allclose(read_parametric_map(tmp_path / "map.dcm").array, 2 * entropy.array + 1)


def test_map_is_read_as_a_volume(series, tmp_path):
    entropy = entropy_on(series)
    write_parametric_map(entropy, series, tmp_path / "maps" / "map.dcm")
    for address in (tmp_path / "maps" / "map.dcm", tmp_path / "maps"):
        assert_same(read_volume(address), entropy)
        assert read_header(address).shape == entropy.shape


# name: what is done to the map, words of the message
BAD_MAPS = {
    "nan": (lambda v: Volume(np.where(v.array > 0.1, np.nan, v.array), v.affine), "no finite 32-bit numbers"),
    "beyond float32": (lambda v: Volume(v.array.astype(float) + 1e300, v.affine), "84 voxels that are no finite"),
    "other shape": (lambda v: Volume(v.array[:, :-1], v.affine), "do not fit the series"),
    "other origin": (lambda v: Volume(v.array, v.affine + np.eye(4, k=3)), "origin"),
    "other spacing": (lambda v: Volume(v.array, v.affine @ np.diag([2, 1, 1, 1])), "spacing"),
    "no affine": (lambda v: Volume(v.array, np.full((4, 4), np.nan)), "affine with NaN"),
    "4-D": (lambda v: Volume(v.array[None], v.affine), "3-D (X, Y, Z)"),
}


@pytest.mark.parametrize("change, words", BAD_MAPS.values(), ids=BAD_MAPS)
def test_map_that_does_not_fit_is_refused_by_name(change, words, write_series, tmp_path):
    series = write_series(7)
    with pytest.raises(DataError) as caught:
        write_parametric_map(change(entropy_on(series)), series, tmp_path / "map.dcm")
    assert str(tmp_path / "map.dcm") in str(caught.value) and words in str(caught.value)
    assert not (tmp_path / "map.dcm").exists()


BAD_SERIES = {
    "no study": ({"StudyInstanceUID": None}, "no StudyInstanceUID, expected one"),
    "no frame of reference": ({"FrameOfReferenceUID": None}, "no FrameOfReferenceUID"),
    "two studies": ({"edit": lambda dataset, i: setattr(dataset, "StudyInstanceUID", generate_uid())}, "another study"),
    "uneven": (
        {"edit": lambda dataset, i: setattr(dataset, "ImagePositionPatient", [-10, 20, 30 + 2 * i + 0.7 * (i == 2)])},
        "uneven slices",
    ),
}


@pytest.mark.parametrize("faults, words", BAD_SERIES.values(), ids=BAD_SERIES)
def test_series_that_cannot_be_referred_to_is_refused_without_patient_data(faults, words, write_series, tmp_path):
    entropy = entropy_on(write_series(7, name="good"))
    series = write_series(7, **faults)
    with pytest.raises(DataError) as caught:
        write_parametric_map(entropy, series, tmp_path / "map.dcm")
    text = str(caught.value)
    assert str(series) in text and words in text
    assert not [secret for secret in ("Secret", "SECRET", "1901") if secret in text]


def test_odd_patient_data_is_written_to_no_log(write_series, tmp_path, caplog, capfd):
    odd = dict.fromkeys(("PatientSex", "StudyTime", "PatientBirthDate"), "Secret")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        series = write_series(PatientName="Secret without caret", **odd)
    entropy = entropy_on(series)
    caplog.clear()
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings():
        warnings.simplefilter("error")
        write_parametric_map(entropy, series, tmp_path / "map.dcm")
    assert "secret" not in caplog.text.lower() + "".join(capfd.readouterr()).lower()
    assert pydicom.dcmread(tmp_path / "map.dcm").PatientName == "Secret without caret"


@pytest.mark.parametrize("highest", [0.0, -1.0, np.nan, np.inf])
def test_window_that_shows_nothing_is_refused(highest, series, tmp_path):
    with pytest.raises(ConfigError, match="expected a number above 0"):
        write_parametric_map(entropy_on(series), series, tmp_path / "map.dcm", highest=highest)


def test_the_folder_of_the_series_stays_one_series(series):
    with pytest.raises(ConfigError, match="Choose another folder"):
        write_parametric_map(entropy_on(series), series, series / "map.dcm")


def test_the_way_to_highdicom_is_told_where_it_is_missing(series, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "highdicom", None)
    with pytest.raises(ConfigError, match=r"pip install 'medssl\[dicom\]'"):
        write_parametric_map(entropy_on(series), series, tmp_path / "map.dcm")


def first_frame_again(dataset):
    position = dataset.PerFrameFunctionalGroupsSequence[0].PlanePositionSequence
    dataset.PerFrameFunctionalGroupsSequence[1].PlanePositionSequence = position


BAD_FILES = {
    "another kind": ({"SOPClassUID": pydicom.uid.SegmentationStorage}, "Segmentation Storage, expected Parametric Map"),
    "no mapping": ({"SharedFunctionalGroupsSequence": []}, "incomplete"),
    "no places": ({"PerFrameFunctionalGroupsSequence": []}, "0 of them described"),
    "two numbers a voxel": ({"change": first_frame_again}, "7 frames on 6 of 7 slices"),
    "integers": ({"BitsAllocated": 16}, "pixels of 16 bits, expected 32-bit floats"),
    "no pixels": ({"FloatPixelData": None}, "0 bytes of pixels for 7 frames"),
    "cut off": ({"FloatPixelData": b"\0" * 332}, "332 bytes of pixels for 7 frames"),
}


@pytest.mark.parametrize("faults, words", BAD_FILES.values(), ids=BAD_FILES)
def test_file_that_is_no_such_map_is_refused_by_name(faults, words, series, edit_file, tmp_path):
    path = tmp_path / "map.dcm"
    write_parametric_map(entropy_on(series), series, path)
    edit_file(path, **faults)
    with pytest.raises(DataError) as caught:
        read_parametric_map(path)
    assert str(path) in str(caught.value) and words in str(caught.value)


@pytest.mark.parametrize("content, words", [(b"not DICOM", "cannot be parsed"), (None, "not found")])
def test_file_that_is_no_dicom_is_refused_by_name(content, words, tmp_path):
    path = tmp_path / "map.dcm"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        open_parametric_map(path)
    assert str(path) in str(caught.value) and words in str(caught.value)


UNEVEN = {"uneven": (2, lambda i: 0.7 * (i == 2), "slices every"), "tilted": (1, lambda i: 0.5 * i, "not parallel")}


@pytest.mark.parametrize("axis, mm, words", UNEVEN.values(), ids=UNEVEN)
def test_frames_that_are_no_grid_are_refused(axis, mm, words, write_series, move_frames, tmp_path):
    series = write_series(7)
    write_parametric_map(entropy_on(series), series, tmp_path / "map.dcm")
    move_frames(tmp_path / "map.dcm", axis, mm)
    with pytest.raises(DataError, match=words):
        read_parametric_map(tmp_path / "map.dcm")
