"""Small scans and DICOM series, well-formed unless a test breaks them."""

import gzip
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

import nibabel as nib
import numpy as np
import pydicom
import pytest
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian, generate_uid

from medssl.data.volumes import read_header
from medssl.data.voxel_grid import Volume

WriteScan = Callable[..., Path]
ORIENTATIONS = [
    np.column_stack([order, signs])
    for order in itertools.permutations(range(3))
    for signs in itertools.product((1, -1), repeat=3)
]


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
    """write(count, edit) -> folder of a CT series 2 mm apart, file names against the order; edit(dataset, index).

    axes: directions of rows and columns, which place the slices 1.5 mm apart. Further keywords set elements of all
    slices, None takes one away.
    """

    def write(
        count: int = 5,
        edit: Callable[[Dataset, int], object] | None = None,
        name: str = "series",
        axes: tuple[Sequence[float], Sequence[float]] | None = None,
        **elements: object,
    ) -> Path:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        uid, study, frame_of_reference = generate_uid(), generate_uid(), generate_uid()
        for index in range(count):
            dataset = ct_slice(index)
            dataset.SeriesInstanceUID, dataset.StudyInstanceUID = uid, study
            dataset.FrameOfReferenceUID = frame_of_reference
            if axes is not None:
                place(dataset, index, *axes)
            for element, value in elements.items():
                set_element(dataset, element, value)
            if edit is not None:
                edit(dataset, index)
            dataset.save_as(folder / f"{count - index:03d}.dcm", enforce_file_format=True)
        return folder

    return write


@pytest.fixture
def series(write_series: Callable[..., Path]) -> Path:
    """Seven oblique slices."""
    return write_series(7, axes=([0.8, 0.6, 0.0], [0.0, 0.0, -1.0]))


@pytest.fixture
def draw_labels() -> Callable[[Path], Volume]:
    """draw(series) -> labels 0, 2 and 7 on its grid; its first and last slice are empty."""

    def draw(series: Path) -> Volume:
        header = read_header(series)
        array = np.random.default_rng(0).choice([0, 2, 7], header.shape).astype(np.uint8)
        array[..., [0, -1]] = 0
        return Volume(array, header.affine)

    return draw


@pytest.fixture(params=ORIENTATIONS, ids=["".join(nib.orientations.ornt2axcodes(o)) for o in ORIENTATIONS])
def orientation(request: pytest.FixtureRequest) -> np.ndarray:
    """Each of the 48 orders and directions of three axes, as nibabel writes them: rows (new axis, direction)."""
    return request.param


@pytest.fixture
def turned() -> Callable[[Volume, np.ndarray], Volume]:
    """turn(volume, orientation) -> the same voxels in the same places, axes exchanged and flipped by nibabel."""

    def turn(volume: Volume, orientation: np.ndarray) -> Volume:
        affine = volume.affine @ nib.orientations.inv_ornt_aff(orientation, volume.shape)
        return Volume(nib.apply_orientation(volume.array, orientation), affine)

    return turn


@pytest.fixture
def edit_file() -> Callable[..., None]:
    """edit(path, change, **elements): change(dataset) and set elements of a DICOM file, None takes one away."""

    def edit(path: Path, change: Callable[[Dataset], object] | None = None, **elements: object) -> None:
        dataset = pydicom.dcmread(path)
        if change is not None:
            change(dataset)
        for element, value in elements.items():
            set_element(dataset, element, value)
        dataset.save_as(path)

    return edit


@pytest.fixture
def move_frames(edit_file: Callable[..., None]) -> Callable[..., None]:
    """move(path, axis, mm): frame i of a DICOM file by mm(i) along a patient axis."""

    def move(path: Path, axis: int, mm: Callable[[int], float]) -> None:
        def change(dataset: Dataset) -> None:
            for index, frame in enumerate(dataset.PerFrameFunctionalGroupsSequence):
                position = frame.PlanePositionSequence[0].ImagePositionPatient
                position[axis] = float(position[axis]) + mm(index)

        edit_file(path, change)

    return move


def set_element(dataset: Dataset, name: str, value: object) -> None:
    if value is None:
        delattr(dataset, name)
    else:
        setattr(dataset, name, value)


def place(dataset: Dataset, index: int, along_row: Sequence[float], along_column: Sequence[float]) -> None:
    normal = np.cross(along_row, along_column)
    dataset.ImageOrientationPatient = [*map(float, along_row), *map(float, along_column)]
    dataset.ImagePositionPatient = [round(v, 10) for v in np.array([3.0, -4.0, 5.0]) + 1.5 * index * normal]


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
