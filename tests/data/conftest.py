"""Small scans and DICOM series, well-formed unless a test breaks them."""

import gzip
from collections.abc import Callable
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian, generate_uid

WriteScan = Callable[..., Path]


@pytest.fixture
def ramp() -> np.ndarray:
    """(6, 5, 4) int16, every voxel another value."""
    return np.arange(120, dtype=np.int16).reshape(6, 5, 4)


@pytest.fixture
def write_scan(tmp_path: Path, ramp: np.ndarray) -> WriteScan:
    """write(name, array, affine) -> path of a NIfTI file in tmp_path."""

    def write(name: str = "scan.nii.gz", array: np.ndarray | None = None, affine: np.ndarray | None = None) -> Path:
        content = nib.Nifti1Image(ramp if array is None else array, np.eye(4)).to_bytes()
        header = nib.Nifti1Header(content[:348])
        header.set_qform(None, code=0)
        # into the header itself, as nibabel's images refuse a broken affine
        header.set_sform(np.eye(4) if affine is None else affine, code=1)
        content = header.binaryblock + content[348:]
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return tmp_path / name

    return write


@pytest.fixture
def write_series(tmp_path: Path) -> Callable[..., Path]:
    """write(count, edit) -> folder of a CT series 2 mm apart, file names against the order; edit(dataset, index)."""

    def write(count: int = 5, edit: Callable[[Dataset, int], object] | None = None, name: str = "series") -> Path:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        uid = generate_uid()
        for index in range(count):
            dataset = ct_slice(index)
            dataset.SeriesInstanceUID = uid
            if edit is not None:
                edit(dataset, index)
            dataset.save_as(folder / f"{count - index:03d}.dcm", enforce_file_format=True)
        return folder

    return write


def ct_slice(index: int) -> Dataset:
    """(3 rows, 4 columns) of pixel values 100 * index + 0..11, rescaled by 2 x - 1000."""
    dataset = Dataset()
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    dataset.SOPClassUID, dataset.SOPInstanceUID = CTImageStorage, generate_uid()
    dataset.PatientName, dataset.PatientID, dataset.PatientBirthDate = "Secret^Name", "SECRET-ID", "19010203"
    dataset.Modality = "CT"
    dataset.Rows, dataset.Columns = 3, 4
    dataset.PixelSpacing = [0.5, 0.75]
    dataset.ImageOrientationPatient = [1, 0, 0, 0, 1, 0]
    dataset.ImagePositionPatient = [-10, 20, 30 + 2 * index]
    dataset.SliceThickness = 2
    dataset.SamplesPerPixel, dataset.PhotometricInterpretation = 1, "MONOCHROME2"
    dataset.BitsAllocated, dataset.BitsStored, dataset.HighBit, dataset.PixelRepresentation = 16, 16, 15, 1
    dataset.RescaleSlope, dataset.RescaleIntercept = 2, -1000
    dataset.PixelData = (np.arange(12, dtype="<i2") + 100 * index).tobytes()
    return dataset
