"""Opening each kind of file: what it declares, and a function that reads its voxels while the file is open.

An opener takes (path, key) and yields (Header as declared, voxels). The header comes first so that the declared size
is checked before anything is decompressed.
"""

import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import h5py
import nibabel as nib
import numpy as np
import SimpleITK as sitk  # noqa: N813

from medssl.data.dicom import is_dicom_file, read_dicom_stack
from medssl.data.dicom_map import open_parametric_map, parametric_map_in
from medssl.data.dicom_seg import open_segmentation, segmentation_in
from medssl.data.findings import volume_error
from medssl.data.voxel_grid import LPS_TO_RAS, Header

COPY_AGAIN = "Copy or download the file again."
LEFT_ATRIUM_SPACING_MM = 0.625
HDF5_SUFFIXES = (".h5", ".hdf5")
ITK_SUFFIXES = (".nrrd", ".mha", ".mhd")
SUPPORTED = ".nii, .nii.gz, .nrrd, .mha, .mhd, .h5::key, or a folder of DICOM files"

Opened = tuple[Header, Callable[[], np.ndarray]]
Opener = Callable[[Path, str], AbstractContextManager[Opened]]


def opener_of(path: Path) -> Opener | None:
    """Opener for the kind of file or folder, or None where medssl knows none."""
    name = path.name.lower()
    if path.is_dir():
        return open_dicom
    if name.endswith((".nii", ".nii.gz")):
        return open_nifti
    if name.endswith(ITK_SUFFIXES):
        return open_itk
    if name.endswith(HDF5_SUFFIXES):
        return open_hdf5
    return open_dicom if name.endswith(".dcm") or is_dicom_file(path) else None


@contextmanager
def open_nifti(path: Path, _: str) -> Iterator[Opened]:
    compressed = path.name.lower().endswith(".gz")
    with path.open("rb") as raw:
        is_gzip = raw.read(2) == b"\x1f\x8b"
    if compressed and not is_gzip:
        way_out = "If it is a plain NIfTI file, rename it to .nii; else copy or download it again."
        raise volume_error("not-gzip", path, "not gzip", "gzip, as .gz says", way_out)
    if is_gzip and not compressed:
        raise volume_error("wrong-magic", path, "gzip", "plain NIfTI, as .nii says", "Rename it to .nii.gz.")
    try:
        with gzip.open(path) if compressed else path.open("rb") as stream:
            header, nifti = _nifti_header(path, stream.read(540))
            yield header, lambda: _nifti_voxels(stream, nifti)
    except (gzip.BadGzipFile, zlib.error) as error:
        raise volume_error("damaged-gzip", path, f"damaged ({error})", "an intact gzip", COPY_AGAIN) from error
    except (EOFError, OSError) as error:
        if getattr(error, "errno", None):  # the operating system's, not nibabel's word for a short file
            raise
        code = "truncated-gzip" if compressed else "truncated"
        raise volume_error(code, path, "ends too early (truncated)", "a whole file", COPY_AGAIN) from error


def _nifti_header(path: Path, block: bytes) -> tuple[Header, nib.Nifti1Header]:
    kinds: dict[bytes, type[nib.Nifti1Header]] = {b"n+1\0": nib.Nifti1Header, b"n+2\0": nib.Nifti2Header}
    kind = kinds.get(block[344:348]) or kinds.get(block[4:8])
    if kind is None:
        way_out = "Convert the file to .nii.gz, or copy it again."
        raise volume_error("wrong-magic", path, f"begins with {block[:4]!r}", "a NIfTI header", way_out)
    try:
        nifti = kind(block[: kind.template_dtype.itemsize], check=False)
        # asked first, because nibabel's check replaces it by 1 mm with no more than a log line
        axes = min(3, int(nifti["dim"][0]))
        voxel_mm = tuple(float(mm) for mm in nifti["pixdim"][1 : axes + 1])
        nifti.check_fix()
        dtype = nifti.get_data_dtype()
        scaled = nifti.get_slope_inter() not in ((None, None), (1.0, 0.0))
        header = Header(nifti.get_data_shape(), nifti.get_best_affine(), np.dtype(np.float32) if scaled else dtype)
    except (nib.spatialimages.HeaderDataError, ValueError) as error:
        raise volume_error("bad-header", path, f"header: {error}", "a valid NIfTI header", COPY_AGAIN) from error
    if not all(mm > 0 for mm in voxel_mm):
        way_out = "Write the true voxel size into the header."
        raise volume_error("spacing", path, f"voxel size {voxel_mm} mm (pixdim)", "more than 0 mm", way_out)
    return header, nifti


def _nifti_voxels(stream: Any, nifti: nib.Nifti1Header) -> np.ndarray:
    array = nifti.raw_data_from_fileobj(stream)
    if isinstance(array, np.memmap):  # would keep the file open, and change with it
        array = np.array(array)
    stream.read(2**20)  # gzip compares its checksum only when it is read to the end
    slope, intercept = nifti.get_slope_inter()
    if (slope, intercept) in ((None, None), (1.0, 0.0)):
        return array
    return (array * np.float64(slope) + np.float64(intercept)).astype(np.float32)


@contextmanager
def open_itk(path: Path, _: str) -> Iterator[Opened]:
    reader = sitk.ImageFileReader()
    reader.SetFileName(str(path))
    try:
        reader.ReadImageInformation()
        if reader.GetNumberOfComponents() != 1:
            found = f"{reader.GetNumberOfComponents()} values a voxel"
            raise volume_error("4-d", path, found, "1", "Save each channel as its own file.")
        yield _itk_header(reader), lambda: sitk.GetArrayFromImage(reader.Execute()).T
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[-1].strip()
        expected = f"a whole {path.suffix} file"
        raise volume_error("wrong-magic", path, f"cannot be read ({reason})", expected, COPY_AGAIN) from error


def _itk_header(reader: sitk.ImageFileReader) -> Header:
    shape = reader.GetSize()
    affine = np.eye(4)
    if len(shape) >= 3:
        directions = np.reshape(reader.GetDirection(), (len(shape), len(shape)))[:3, :3]
        affine[:3, :3] = directions * np.asarray(reader.GetSpacing()[:3])
        affine[:3, 3] = reader.GetOrigin()[:3]
    dtype = sitk.GetArrayFromImage(sitk.Image([1, 1], reader.GetPixelID())).dtype
    return Header(shape, LPS_TO_RAS @ affine, dtype)


@contextmanager
def open_hdf5(path: Path, key: str) -> Iterator[Opened]:
    address = f"{path}::{key}" if key else str(path)
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise volume_error("wrong-magic", address, f"not HDF5 ({error})", "an HDF5 file", COPY_AGAIN) from error
    with file:
        dataset = file.get(key) if key else None
        if not isinstance(dataset, h5py.Dataset):
            found = f"no dataset '{key}'" if key else "no key given"
            way_out = f"Write the address as '{path.name}::<key>'."
            raise volume_error("missing", address, found, f"one of {sorted(file)}", way_out)
        spacing = np.asarray(dataset.attrs.get("spacing_mm", LEFT_ATRIUM_SPACING_MM))
        if spacing.dtype.kind not in "iuf" or spacing.shape not in ((), (1,), (3,)):
            way_out = "Store the voxel size in mm along x, y, z."
            raise volume_error("spacing", address, f"attribute spacing_mm {spacing}", "1 or 3 numbers", way_out)
        affine = np.diag(np.append(np.broadcast_to(spacing.astype(np.float64), 3), 1.0))
        yield Header(dataset.shape, affine, dataset.dtype), lambda: dataset[()]


@contextmanager
def open_dicom(path: Path, _: str) -> Iterator[Opened]:
    segmentation, numbers = segmentation_in(path), parametric_map_in(path)
    if segmentation is not None:
        labels = open_segmentation(segmentation)
        yield labels.header, labels.voxels
    elif numbers is not None:
        values = open_parametric_map(numbers)
        yield values.header, values.voxels
    else:
        stack = read_dicom_stack(path)
        yield stack.header, stack.voxels
