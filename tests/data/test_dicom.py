"""A well-formed series becomes a volume; a series that would place voxels wrongly is refused by name."""

import numpy as np
import pydicom
import pytest
import SimpleITK as sitk  # noqa: N813
from pydicom.uid import HTJ2K, MPEG2MPML, JPEG2000Lossless, JPEGLossless, generate_uid

from medssl.core.errors import DataError
from medssl.data.dicom import patient_key, read_dicom_series, series_in
from medssl.data.findings import VolumeError
from medssl.data.volumes import read_header, read_volume


def move(axis: int, shift_mm):
    """Edit that moves slice `index` by shift_mm(index) along a patient axis."""

    def edit(dataset, index):
        position = [float(value) for value in dataset.ImagePositionPatient]
        position[axis] += shift_mm(index)
        dataset.ImagePositionPatient = position

    return edit


def setting(name: str, value, only: int | None = None):
    """Edit that sets an element of all slices or of one."""

    def edit(dataset, index):
        if only in (None, index):
            setattr(dataset, name, value)

    return edit


def without(name: str):
    return lambda dataset, index: delattr(dataset, name)


def with_syntax(uid):
    def edit(dataset, index):
        dataset.file_meta.TransferSyntaxUID = uid
        dataset.PixelData = pydicom.encaps.encapsulate([b"\0" * 16])
        dataset["PixelData"].is_undefined_length = True

    return edit


def smaller(dataset, index):
    if index == 2:
        dataset.Rows, dataset.PixelData = 2, dataset.PixelData[:16]


def test_series_is_sorted_rescaled_and_placed_as_simpleitk_does(write_series):
    folder = write_series()
    volume = read_dicom_series(folder)
    reader = sitk.ImageSeriesReader()
    reader.SetFileNames(reader.GetGDCMSeriesFileNames(str(folder)))
    image = reader.Execute()
    np.testing.assert_array_equal(volume.array, sitk.GetArrayFromImage(image).T)
    np.testing.assert_array_equal(volume.array[:, 0, 1], [-800, -798, -796, -794])
    np.testing.assert_allclose(volume.affine, [[-0.75, 0, 0, 10], [0, -0.5, 0, -20], [0, 0, 2, 30], [0, 0, 0, 1]])
    assert image.GetSpacing() == volume.spacing_mm
    assert volume.array.dtype == np.float32


def test_oblique_series_agrees_with_simpleitk(write_series):
    along_row, along_column = np.array([0.8, 0.6, 0.0]), np.array([0.0, 0.0, -1.0])
    normal = np.cross(along_row, along_column)

    def turn(dataset, index):
        dataset.ImageOrientationPatient = [*along_row, *along_column]
        dataset.ImagePositionPatient = (np.array([3.0, 4.0, 5.0]) + 1.5 * index * normal).tolist()

    folder = write_series(edit=turn)
    volume = read_dicom_series(folder)
    reader = sitk.ImageSeriesReader()
    reader.SetFileNames(reader.GetGDCMSeriesFileNames(str(folder)))
    image = reader.Execute()
    corner = (3, 2, 4)
    x, y, z = image.TransformIndexToPhysicalPoint(corner)
    np.testing.assert_allclose((volume.affine @ [*corner, 1])[:3], [-x, -y, z], atol=1e-6)
    np.testing.assert_array_equal(volume.array, sitk.GetArrayFromImage(image).T)


def test_header_is_read_without_decoding(write_series):
    folder = write_series(edit=setting("PixelData", b"\0\0"))
    assert read_header(folder).shape == (4, 3, 5)
    with pytest.raises(DataError, match=r"005.dcm: pixels cannot be decoded"):
        read_volume(folder)


def test_one_file_is_one_slice_as_thick_as_it_says(write_series):
    volume = read_volume(write_series() / "001.dcm")
    assert volume.array.shape == (4, 3, 1)
    assert volume.spacing_mm == (0.75, 0.5, 2.0)


def test_other_files_of_the_folder_are_passed_over(write_series):
    folder = write_series()
    (folder / "notes.txt").write_text("not an image")
    (folder / "below").mkdir()
    assert read_dicom_series(folder).array.shape == (4, 3, 5)


# name: edit of the series, the finding's code, words of the message
BAD_SERIES = {
    "missing slice": (move(2, lambda i: 2 * (i > 2)), "missing-slices", "1 missing slices (4.000 mm between 003.dcm"),
    "two gaps": (move(2, lambda i: 2 * (i > 1) + 4 * (i > 2)), "missing-slices", "3 missing slices"),
    "uneven spacing": (move(2, lambda i: 0.7 * (i > 2)), "uneven-spacing", "2.700 mm between 003.dcm and 002.dcm"),
    "duplicate position": (move(2, lambda i: -2 * (i == 3)), "duplicate-position", "same position as"),
    "mixed series": (
        lambda dataset, i: setattr(dataset, "SeriesInstanceUID", generate_uid()) if i == 4 else None,
        "mixed-series",
        "2 series (002.dcm and 3 more; 001.dcm and 0 more)",
    ),
    "mixed orientation": (
        setting("ImageOrientationPatient", [0, 1, 0, 0, 0, 1], only=2),
        "mixed-orientation",
        "003.dcm: another orientation than",
    ),
    "gantry tilt": (move(1, lambda i: 0.5 * i), "gantry-tilt", "sideways by up to 2.00 mm (gantry tilt)"),
    "no codec": (with_syntax(JPEGLossless), "no-codec", "compressed as JPEG Lossless"),
    "unknown compression": (with_syntax(MPEG2MPML), "no-codec", "pip install"),
    "damaged pixels": (with_syntax(JPEG2000Lossless), "damaged-pixels", "pixels cannot be decoded"),
    "missing PixelSpacing": (without("PixelSpacing"), "missing-pixel-spacing", "001.dcm: no PixelSpacing"),
    "missing position": (without("ImagePositionPatient"), "missing-position", "no ImagePositionPatient"),
    "missing orientation": (without("ImageOrientationPatient"), "missing-position", "no ImageOrientationPatient"),
    "broken orientation": (setting("ImageOrientationPatient", [1, 0, 0, 1, 0, 0]), "bad-orientation", "perpendicular"),
    "differing sizes": (smaller, "mixed-size", "003.dcm: (4, 2) pixels"),
    "differing pixel spacing": (setting("PixelSpacing", [1, 1], only=2), "mixed-size", "of (1.0, 1.0) mm"),
    "multi-frame": (setting("NumberOfFrames", 3), "multi-frame", "dcm2niix"),
    "colour": (setting("SamplesPerPixel", 3), "colour", "grey values"),
}


@pytest.mark.parametrize("edit, code, words", BAD_SERIES.values(), ids=BAD_SERIES)
def test_bad_series_is_refused_by_name_and_without_patient_data(edit, code, words, write_series):
    folder = write_series(edit=edit)
    with pytest.raises(VolumeError) as caught:
        read_dicom_series(folder)
    text = str(caught.value)
    assert str(folder) in text
    assert words in text
    assert caught.value.code == code
    assert not [secret for secret in ("Secret", "SECRET", "1901") if secret in text]


@pytest.mark.parametrize("syntax", [JPEG2000Lossless, HTJ2K])
def test_no_codec_is_told_where_the_plugins_are_not_installed(syntax, write_series, monkeypatch):
    monkeypatch.setattr("pydicom.pixels.decoders.base.Decoder.is_available", property(lambda decoder: False))
    with pytest.raises(DataError, match=r"\.dcm: compressed as .*pip install 'medssl\[dicom\]'"):
        read_dicom_series(write_series(edit=with_syntax(syntax)))


def test_rounded_positions_are_no_fault(write_series):
    folder = write_series(edit=move(2, lambda i: 0.004 * (i % 2)))
    assert read_dicom_series(folder).spacing_mm[2] == pytest.approx(2.0)


def test_series_in_lists_the_largest_first(write_series, tmp_path):
    write_series(2, name="all")
    for file in write_series(5, name="other").iterdir():
        file.rename(tmp_path / "all" / f"b{file.name}")
    assert [len(series.files) for series in series_in(tmp_path / "all")] == [5, 2]


def test_patient_key_is_equal_for_one_patient_and_hides_the_id(write_series):
    first, second = write_series(name="a"), write_series(name="b")
    other = write_series(name="c", edit=setting("PatientID", "OTHER"))
    assert patient_key(first) == patient_key(second / "001.dcm") != patient_key(other)
    assert len(patient_key(first)) == 12
    with pytest.raises(DataError, match=r"001.dcm: no PatientID"):
        patient_key(write_series(name="d", edit=without("PatientID")))


def test_missing_folder_and_folder_without_dicom_are_told(tmp_path):
    with pytest.raises(DataError, match="none: not found"):
        read_dicom_series(tmp_path / "none")
    for read in (read_dicom_series, patient_key):
        with pytest.raises(DataError, match="no DICOM"):
            read(tmp_path)
