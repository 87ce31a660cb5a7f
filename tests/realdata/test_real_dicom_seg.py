"""Label maps of real series go through DICOM SEG and come back voxel for voxel, also as highdicom reads them."""

import itertools

import nibabel as nib
import numpy as np
import pydicom
import pytest

from medssl.data.dicom import read_dicom_stack
from medssl.data.dicom_seg import read_segmentation, write_segmentation
from medssl.data.volumes import read_header
from medssl.data.voxel_grid import Header, Volume

pytestmark = pytest.mark.realdata

highdicom = pytest.importorskip("highdicom")

STRUCTURES = {1: "head", 2: "body", 5: "tail"}


def blobs(header: Header) -> Volume:
    """Three ellipsoids; some slices stay empty."""
    array = np.zeros(header.shape, np.uint8)
    place = np.indices(header.shape) / np.reshape(header.shape, (3, 1, 1, 1))
    for label_id, centre in zip(STRUCTURES, ((0.3, 0.4, 0.35), (0.6, 0.5, 0.5), (0.5, 0.8, 0.6)), strict=True):
        array[((place - np.reshape(centre, (3, 1, 1, 1))) ** 2).sum(axis=0) < 0.02 / label_id] = label_id
    return Volume(array, header.affine)


@pytest.mark.parametrize("folder", ["dicom/mr_hippocampus"], indirect=True)
def test_labels_of_a_real_series_come_back_in_all_48_orientations(series, tmp_path):
    labels = blobs(read_header(series))
    assert set(np.unique(labels.array)) == {0, *STRUCTURES}
    path = tmp_path / "seg.dcm"
    for order, signs in itertools.product(itertools.permutations(range(3)), itertools.product((1, -1), repeat=3)):
        turn = np.column_stack([order, signs])
        affine = labels.affine @ nib.orientations.inv_ornt_aff(turn, labels.shape)
        write_segmentation(Volume(nib.apply_orientation(labels.array, turn), affine), series, path, STRUCTURES)
        found = read_segmentation(path)
        np.testing.assert_array_equal(found.array, labels.array)
        np.testing.assert_allclose(found.affine, labels.affine, atol=1e-9)


@pytest.mark.parametrize("folder", ["dicom/ct_abdomen", "dicom/mr_hippocampus"], indirect=True)
def test_highdicom_and_medssl_find_them_on_the_slices_they_were_drawn_on(series, tmp_path):
    labels = blobs(read_header(series))
    write_segmentation(labels, series, tmp_path / "seg.dcm", STRUCTURES)
    slices = read_dicom_stack(series).files
    stacked = highdicom.seg.segread(tmp_path / "seg.dcm").get_pixels_by_source_instance(
        [pydicom.dcmread(file, stop_before_pixels=True).file_meta.MediaStorageSOPInstanceUID for file in slices],
        assert_missing_frames_are_empty=True,
    )
    for number, label_id in enumerate(STRUCTURES):
        np.testing.assert_array_equal(stacked[..., number].T, labels.array == label_id)
    found = read_segmentation(tmp_path / "seg.dcm")
    np.testing.assert_array_equal(found.array, labels.array)
    np.testing.assert_allclose(found.affine, labels.affine, atol=1e-9)
