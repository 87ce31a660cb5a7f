"""Every kind of file gives the same volume, and every unreadable file an error that names it."""

import gzip
import os
from pathlib import Path

import h5py
import nibabel as nib
import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813
import torch
from monai.transforms import Compose, EnsureChannelFirst, LoadImaged

from medssl.core.errors import DataError, error_behind
from medssl.data import volumes
from medssl.data.findings import VolumeError
from medssl.data.volumes import LoadVolumed, VolumeReader, read_header, read_volume, write_nifti

TURNED = np.array([[0.0, -2.0, 0.0, 5.0], [1.5, 0.0, 0.0, -7.0], [0.0, 0.0, 3.0, 11.0], [0.0, 0.0, 0.0, 1.0]])


def write_itk(path: Path, array: np.ndarray, affine: np.ndarray) -> Path:
    image = sitk.GetImageFromArray(array.T)
    lps = np.diag([-1.0, -1.0, 1.0, 1.0]) @ affine
    spacing = np.linalg.norm(lps[:3, :3], axis=0)
    image.SetSpacing(spacing.tolist())
    image.SetDirection((lps[:3, :3] / spacing).ravel().tolist())
    image.SetOrigin(lps[:3, 3].tolist())
    sitk.WriteImage(image, str(path), useCompression=True)
    return path


def write_hdf5(path: Path, **datasets: object) -> Path:
    with h5py.File(path, "w") as file:
        for key, value in datasets.items():
            file[key] = value
    return path


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz", ".nrrd", ".mha", ".mhd"])
def test_every_format_gives_the_same_voxels_and_ras_affine(suffix, tmp_path, ramp):
    path = tmp_path / f"scan{suffix}"
    if ".nii" in suffix:
        write_nifti(path, ramp, TURNED, np.int16)
    else:
        write_itk(path, ramp, TURNED)
    volume, header = read_volume(path), read_header(path)
    np.testing.assert_array_equal(volume.array, ramp)
    np.testing.assert_allclose(volume.affine, TURNED, atol=1e-12)
    assert volume.spacing_mm == pytest.approx((1.5, 2.0, 3.0))
    assert volume.array.dtype == np.int16
    assert (header.shape, header.dtype) == (ramp.shape, np.int16)
    np.testing.assert_array_equal(header.affine, volume.affine)


def test_hdf5_has_left_atrium_spacing_unless_it_says_otherwise(tmp_path, ramp):
    path = write_hdf5(tmp_path / "mri_norm2.h5", image=ramp.astype(np.float32), label=(ramp > 50).astype(np.uint8))
    with h5py.File(path, "a") as file:
        file["label"].attrs["spacing_mm"] = (1.0, 2.0, 3.0)
    assert read_volume(f"{path}::image").spacing_mm == (0.625, 0.625, 0.625)
    assert read_volume(f"{path}::label").spacing_mm == (1.0, 2.0, 3.0)
    assert read_volume(f"{path}::label").array.dtype == np.uint8


@pytest.mark.parametrize("stored", ["float64", ">f4", ">i2", "uint8"])
def test_floats_come_as_float32_and_integers_as_stored(stored, tmp_path, ramp):
    path = tmp_path / "scan.nii"
    nib.save(nib.Nifti1Image(ramp.astype(stored), np.eye(4)), path)
    volume = read_volume(path)
    native = np.dtype(stored).newbyteorder("=")
    assert volume.array.dtype == (native if native.kind in "iu" else np.float32)
    assert volume.array.dtype == read_header(path).dtype
    np.testing.assert_array_equal(volume.array, ramp)


def test_scaled_integers_come_as_scaled_float32(tmp_path, ramp):
    image = nib.Nifti1Image(ramp, np.eye(4))
    image.header.set_slope_inter(0.5, -3)
    nib.save(image, tmp_path / "scan.nii.gz")
    volume = read_volume(tmp_path / "scan.nii.gz")
    np.testing.assert_allclose(volume.array, nib.load(tmp_path / "scan.nii.gz").get_fdata(), rtol=1e-6)
    assert volume.array.dtype == read_header(tmp_path / "scan.nii.gz").dtype == np.float32


@pytest.mark.parametrize("shape", [(6, 5, 4, 1), (6, 5, 4, 1, 1)])
def test_trailing_axes_of_length_one_are_dropped(shape, write_scan, ramp):
    np.testing.assert_array_equal(read_volume(write_scan(array=ramp.reshape(shape))).array, ramp)


def plain(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def changed(path: Path, change) -> Path:
    path.write_bytes(change(path.read_bytes()))
    return path


def flip_checksum(content: bytes) -> bytes:
    return content[:-8] + bytes([content[-8] ^ 1]) + content[-7:]


def declaring(path: Path, **fields: object) -> Path:
    """NIfTI file with the header fields set, whatever nibabel thinks of them, and few voxels."""
    header = nib.Nifti1Header()
    header.set_data_shape((6, 5, 4))
    header["magic"], header["vox_offset"] = b"n+1", 352
    for name, value in fields.items():
        header[name] = value
    return plain(path, gzip.compress(header.binaryblock + bytes(4 + 6 * 5 * 4 * 4)))


VOXELS = np.random.default_rng(0).integers(0, 1000, (6, 5, 4)).astype(np.int16)
# name: what is written, the finding's code, words of the message
BAD_FILES = {
    "missing": (lambda d: d / "none.nii.gz", "missing", "not found"),
    "empty": (lambda d: plain(d / "a.nii.gz", b""), "empty", "0 bytes"),
    "truncated gzip": (lambda d: changed(nifti(d), lambda b: b[: len(b) // 2]), "truncated-gzip", "truncated"),
    "gzip without its end": (lambda d: changed(nifti(d), lambda b: b[:-4]), "truncated-gzip", "truncated"),
    "gzip header only": (lambda d: changed(nifti(d), lambda b: b[:20]), "truncated-gzip", "truncated"),
    "gzip of too few voxels": (
        lambda d: changed(nifti(d), lambda b: gzip.compress(gzip.decompress(b)[:-9])),
        "truncated-gzip",
        "truncated",
    ),
    "wrong checksum": (lambda d: changed(nifti(d), flip_checksum), "damaged-gzip", "CRC"),
    "truncated plain": (lambda d: changed(nifti(d, "a.nii"), lambda b: b[:-9]), "truncated", "truncated"),
    "not gzip": (lambda d: nifti(d, "a.nii").rename(d / "a.nii.gz"), "not-gzip", "rename it to .nii"),
    "gzip named .nii": (lambda d: nifti(d).rename(d / "b.nii"), "wrong-magic", "Rename it to .nii.gz"),
    "wrong magic": (lambda d: plain(d / "a.nii", b"<html>" * 99), "wrong-magic", "a NIfTI header"),
    "wrong magic in gzip": (lambda d: plain(d / "a.nii.gz", gzip.compress(b"x" * 999)), "wrong-magic", "b'xxxx'"),
    "2-D": (lambda d: nifti(d, array=VOXELS[..., 0]), "2-d", "2-D, shape (6, 5), expected 3-D"),
    "4-D": (lambda d: nifti(d, array=np.stack([VOXELS] * 2, -1)), "4-d", "shape (6, 5, 4, 2), expected 3-D"),
    "zero pixdim": (lambda d: declaring(d / "a.nii.gz", pixdim=[1, 0, 1, 1, 0, 0, 0, 0]), "spacing", "(0.0, 1.0, 1.0)"),
    "negative pixdim": (lambda d: declaring(d / "a.nii.gz", pixdim=[1, 1, -2, 1, 0, 0, 0, 0]), "spacing", "-2.0"),
    "NaN pixdim": (lambda d: declaring(d / "a.nii.gz", pixdim=[1, 1, np.nan, 1, 0, 0, 0, 0]), "spacing", "nan"),
    "2-D without a third pixdim": (
        lambda d: declaring(d / "a.nii.gz", dim=[2, 6, 5, 1, 1, 1, 1, 1], pixdim=[1, 1, 1, 0, 0, 0, 0, 0]),
        "2-d",
        "shape (6, 5)",
    ),
    "colour voxels": (
        lambda d: declaring(d / "a.nii.gz", datatype=128, bitpix=24),
        "unsupported",
        "integers or floats",
    ),
    "no voxels": (lambda d: declaring(d / "a.nii.gz", dim=[3, 6, 0, 4, 1, 1, 1, 1]), "no-voxels", "(6, 0, 4)"),
    "unknown datatype": (lambda d: declaring(d / "a.nii.gz", datatype=77), "bad-header", "77"),
    "too large": (lambda d: declaring(d / "a.nii.gz", dim=[3, 32767, 32767, 32767, 1, 1, 1, 1]), "too-large", "GiB"),
    "unknown suffix": (lambda d: plain(d / "a.png", b"png"), "unsupported", ".nii.gz"),
    "hdf5 without key": (lambda d: str(hdf5(d)), "missing", "one of ['image', 'text']"),
    "hdf5 with a wrong key": (lambda d: f"{hdf5(d)}::label", "missing", "no dataset 'label'"),
    "hdf5 of text": (lambda d: f"{hdf5(d)}::text", "unsupported", "integers or floats"),
    "hdf5 with odd spacing": (lambda d: f"{hdf5(d, (1.0, 2.0))}::image", "spacing", "spacing_mm [1. 2.]"),
    "hdf5 wrong magic": (lambda d: f"{plain(d / 'a.h5', b'x' * 99)}::image", "wrong-magic", "an HDF5 file"),
    "hdf5 truncated": (lambda d: f"{changed(hdf5(d), lambda b: b[:-200])}::image", "wrong-magic", "truncated"),
    "nrrd wrong magic": (lambda d: plain(d / "a.nrrd", b"x" * 99), "wrong-magic", "a whole .nrrd file"),
    "nrrd truncated": (lambda d: changed(itk(d, "a.nrrd"), lambda b: b[:-40]), "wrong-magic", "a whole .nrrd file"),
    "mha truncated": (lambda d: changed(itk(d, "a.mha"), lambda b: b[:-40]), "wrong-magic", "a whole .mha file"),
    "nrrd of vectors": (lambda d: vectors(d / "a.nrrd"), "4-d", "3 values a voxel"),
    "folder without DICOM": (lambda d: d, "no-dicom", "no DICOM image"),
}


def nifti(folder: Path, name: str = "a.nii.gz", array: np.ndarray = VOXELS) -> Path:
    write_nifti(folder / name, array, np.eye(4), array.dtype)
    return folder / name


def itk(folder: Path, name: str) -> Path:
    return write_itk(folder / name, VOXELS, np.eye(4))


def hdf5(folder: Path, spacing_mm: object = 1.0) -> Path:
    path = write_hdf5(folder / "a.h5", image=VOXELS, text="hello")
    with h5py.File(path, "a") as file:
        file["image"].attrs["spacing_mm"] = spacing_mm
    return path


def vectors(path: Path) -> Path:
    sitk.WriteImage(sitk.GetImageFromArray(np.zeros((4, 5, 6, 3), np.float32), isVector=True), str(path))
    return path


@pytest.mark.parametrize("make, code, words", BAD_FILES.values(), ids=BAD_FILES)
def test_unreadable_file_is_named_with_its_finding(make, code, words, tmp_path):
    address = make(tmp_path)
    with pytest.raises(DataError) as caught:
        read_volume(address)
    assert str(address) in str(caught.value)
    assert words in str(caught.value)
    assert isinstance(caught.value, VolumeError)
    assert caught.value.code == code


def test_declared_size_is_checked_before_voxels_are_read(write_scan, monkeypatch):
    noise = np.random.default_rng(0).normal(size=(20, 20, 20)).astype(np.float32)
    path = changed(write_scan(array=noise), lambda content: content[: len(content) // 2])
    monkeypatch.setattr(volumes, "MAX_BYTES", noise.nbytes - 1)
    with pytest.raises(DataError, match=r"declares .* GiB \(shape \(20, 20, 20\)\)"):
        read_volume(path)


def test_permission_denied_is_a_data_error(write_scan):
    path = write_scan()
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("root reads everything")
    with pytest.raises(DataError, match=r"scan.nii.gz: Permission denied"):
        read_volume(path)


def test_monai_load_imaged_takes_every_address(tmp_path, ramp, write_series):
    write_nifti(tmp_path / "a.nii.gz", ramp, TURNED, np.int16)
    hdf = f"{write_hdf5(tmp_path / 'a.h5', image=ramp)}::image"
    addresses = [str(tmp_path / "a.nii.gz"), hdf, str(write_series()), str(write_itk(tmp_path / "a.mha", ramp, TURNED))]
    for address in addresses:
        image = LoadImaged("image", reader=VolumeReader(), image_only=True)({"image": address})["image"]
        volume = read_volume(address)
        assert image.dtype == torch.float32
        np.testing.assert_array_equal(image.numpy(), volume.array)
        np.testing.assert_array_equal(image.affine, volume.affine)
        np.testing.assert_array_equal(image.meta["original_affine"], volume.affine)
        assert tuple(image.meta["spatial_shape"]) == volume.array.shape
        assert image.meta["space"] == "RAS"
        assert image.meta["filename_or_obj"] == address
        assert EnsureChannelFirst()(image).shape == (1, *volume.array.shape)


def test_load_volumed_gives_float_images_and_integer_labels(write_scan, ramp):
    case = {
        "image": str(write_scan("i.nii.gz")),
        "label": str(write_scan("l.nii.gz", ramp.astype(np.uint8))),
        "id": "1",
    }
    loaded = LoadVolumed(["image", "label"])(case)
    assert (loaded["image"].dtype, loaded["label"].dtype, loaded["id"]) == (torch.float32, torch.uint8, "1")
    assert loaded["label"].meta["filename_or_obj"] == case["label"]
    assert LoadVolumed(["image", "label"], allow_missing_keys=True)({"image": case["image"]}).keys() == {"image"}


@pytest.mark.parametrize("load", [LoadVolumed("image"), LoadImaged("image", reader=VolumeReader())])
def test_data_error_passes_through_monai_loaders(load):
    with pytest.raises(DataError, match=r"none.nii.gz: not found"):
        load({"image": "none.nii.gz"})


def test_data_error_is_found_behind_the_error_of_compose():
    with pytest.raises(RuntimeError) as caught:
        Compose([LoadVolumed("image")])({"image": "none.nii.gz"})
    assert "none.nii.gz: not found" in str(error_behind(caught.value))
    assert error_behind(ValueError("another")) is None


def test_write_nifti_gives_same_bytes_and_sets_both_forms(tmp_path, ramp):
    for folder in ("a", "b"):
        write_nifti(tmp_path / folder / f"{folder}.nii.gz", ramp, TURNED, np.float32)
    content = [(tmp_path / folder / f"{folder}.nii.gz").read_bytes() for folder in ("a", "b")]
    assert content[0] == content[1]
    header = nib.load(tmp_path / "a" / "a.nii.gz").header
    assert (int(header["qform_code"]), int(header["sform_code"])) == (1, 1)
    np.testing.assert_allclose(header.get_qform(), TURNED, atol=1e-5)
    np.testing.assert_allclose(header.get_sform(), TURNED)
    assert header.get_data_dtype() == np.float32


def test_failed_write_keeps_the_old_file_and_leaves_no_draft(tmp_path, ramp, monkeypatch):
    write_nifti(tmp_path / "a.nii.gz", ramp, TURNED, np.int16)
    before = (tmp_path / "a.nii.gz").read_bytes()

    def disk_full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", disk_full)
    with pytest.raises(OSError, match="No space left"):
        write_nifti(tmp_path / "a.nii.gz", ramp + 1, TURNED, np.int16)
    assert [path.name for path in tmp_path.iterdir()] == ["a.nii.gz"]
    assert (tmp_path / "a.nii.gz").read_bytes() == before


def test_write_nifti_refuses_other_suffixes(tmp_path, ramp):
    with pytest.raises(DataError, match=r"a.npy: cannot be written, expected a name that ends in .nii"):
        write_nifti(tmp_path / "a.npy", ramp, TURNED, np.int16)
