"""Real scans are read as nibabel, h5py and SimpleITK read them, and pass the check."""

import h5py
import nibabel as nib
import numpy as np
import pydicom
import pytest
import SimpleITK as sitk  # noqa: N813

from medssl.data.dicom import patient_key, read_dicom_series
from medssl.data.validate import check_cases
from medssl.data.volumes import read_header, read_volume

pytestmark = pytest.mark.realdata


@pytest.mark.parametrize("folder", ["ct", "hippocampus/imagesTr", "hippocampus/labelsTr"], indirect=True)
def test_nifti_agrees_with_nibabel(folder):
    for path in sorted(folder.glob("*.nii.gz"))[:5]:
        volume, expected = read_volume(path), nib.load(path)
        np.testing.assert_allclose(volume.array, expected.get_fdata(), rtol=1e-6)
        np.testing.assert_array_equal(volume.affine, expected.affine)


@pytest.mark.parametrize("folder", ["left_atrium"], indirect=True)
def test_left_atrium_agrees_with_h5py(folder):
    path = sorted(folder.rglob("mri_norm2.h5"))[0]
    image, label = read_volume(f"{path}::image"), read_volume(f"{path}::label")
    with h5py.File(path) as file:
        np.testing.assert_array_equal(image.array, file["image"][()])
        np.testing.assert_array_equal(label.array, file["label"][()])
    assert image.spacing_mm == (0.625, 0.625, 0.625)
    assert (image.array.dtype, label.array.dtype) == (np.float32, np.uint8)


@pytest.mark.parametrize("folder", ["dicom/ct_abdomen", "dicom/mr_hippocampus"], indirect=True)
def test_dicom_agrees_with_simpleitk(folder):
    reader = sitk.ImageSeriesReader()
    reader.SetFileNames(reader.GetGDCMSeriesFileNames(str(folder)))
    expected = reader.Execute()
    volume = read_dicom_series(folder)
    np.testing.assert_array_equal(volume.array, sitk.GetArrayFromImage(expected).T)
    corners = np.stack(np.meshgrid(*([0, length - 1] for length in volume.array.shape)), -1).reshape(-1, 3).tolist()
    for corner in corners:
        x, y, z = expected.TransformIndexToPhysicalPoint(corner)
        np.testing.assert_allclose((volume.affine @ [*corner, 1])[:3], [-x, -y, z], atol=1e-6)
    assert read_header(folder).shape == volume.array.shape


@pytest.mark.parametrize("folder", ["dicom/mr_hippocampus"], indirect=True)
def test_patient_key_does_not_hold_the_id(folder):
    file = sorted(folder.iterdir())[0]
    assert str(pydicom.dcmread(file, stop_before_pixels=True).PatientID) not in patient_key(folder)


@pytest.mark.parametrize("folder", ["hippocampus"], indirect=True)
def test_real_cases_pass_the_check(folder, tmp_path):
    images = sorted((folder / "imagesTr").glob("*.nii.gz"))[:40]
    cases = [
        {"id": path.name, "patient": path.name, "role": "labelled", "image": str(path), "label": str(label)}
        for path in images
        if (label := folder / "labelsTr" / path.name).exists()
    ]
    assert len(cases) == len(images)
    assert check_cases(cases, label_ids=[1, 2], cache_file=tmp_path / "check.json") == []
