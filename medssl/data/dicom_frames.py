"""Reading DICOM files of many frames, each somewhere in the patient: where they lie, and whether that is one grid.

No text made here holds a value of an element: errors name files and what is wrong with them.
"""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pydicom
from pydicom.errors import InvalidDicomError
from pydicom.filereader import read_file_meta_info
from pydicom.uid import UID, ImplicitVRLittleEndian

from medssl.data.dicom import DRIFT_MM, SAME_DIRECTION, SAME_POSITION_MM, is_dicom_file
from medssl.data.findings import volume_error
from medssl.data.voxel_grid import LPS_TO_RAS

MAX_SLICES = 10_000
OFF_GRID = 0.1  # of the slice spacing, between a frame and its slice
EXPORT_FILE = "Export the file again, or convert it to .nii.gz."


def file_of_kind(path: Path, kind: UID) -> Path | None:
    """The path itself, or the one DICOM file of a folder, if it is of that SOP class; else None."""
    if path.is_dir():
        files = list(itertools.islice((file for file in sorted(path.iterdir()) if is_dicom_file(file)), 2))
        return file_of_kind(files[0], kind) if len(files) == 1 else None
    if not is_dicom_file(path):
        return None
    return path if read_file_meta_info(path).get("MediaStorageSOPClassUID") == kind else None


def parsed(path: Path, expected: str, stop_before_pixels: bool = False) -> pydicom.Dataset:
    """The file's elements. Raises DataError where it is missing or no DICOM."""
    if not path.is_file():
        raise volume_error("missing", path, "not found", expected, "Check the path.")
    try:
        return pydicom.dcmread(path, stop_before_pixels=stop_before_pixels)
    except (InvalidDicomError, EOFError, ValueError, NotImplementedError) as error:
        # from None: pydicom's text may quote the values of elements
        found = f"cannot be parsed ({type(error).__name__})"
        raise volume_error("wrong-magic", path, found, expected, EXPORT_FILE) from None


@contextmanager
def complete_header(path: Path, expected: str) -> Iterator[None]:
    """Turns what is raised where elements are missing or odd into a DataError that names the file."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        # from None: pydicom's text may quote the values of elements
        found = f"incomplete ({type(error).__name__})"
        raise volume_error("bad-header", path, found, expected, EXPORT_FILE) from None


def check_plain(path: Path, dataset: pydicom.Dataset) -> None:
    """Raises DataError unless the pixels are not compressed and each of the frames is described."""
    syntax = UID(dataset.file_meta.get("TransferSyntaxUID", ImplicitVRLittleEndian))
    if syntax.is_encapsulated or not syntax.is_little_endian:
        way_out = "Decompress the file with gdcmconv --raw."
        raise volume_error("no-codec", path, f"stored as {syntax.name}", "plain pixels", way_out)
    described = len(dataset.PerFrameFunctionalGroupsSequence)
    if described != dataset.NumberOfFrames or not described:
        found = f"{dataset.NumberOfFrames} frames, {described} of them described"
        raise volume_error("bad-header", path, found, "all", EXPORT_FILE)


def group_of(frame: pydicom.Dataset, shared: pydicom.Dataset, name: str) -> pydicom.Dataset:
    """The one item of a functional group, which a frame has for itself or shares with all."""
    return (frame if name in frame else shared)[name][0]


def grid_of(
    path: Path, shared: pydicom.Dataset, frames: Sequence[pydicom.Dataset], slice_spacing_mm: float | None = None
) -> tuple[list[int], np.ndarray]:
    """Slice of every frame, counted from the lowest one, and affine to RAS mm. Raises DataError where they are uneven.

    Several frames may lie on a slice, and slices between others may have none. slice_spacing_mm: of files that do not
    tell; by default the smallest distance of two frames, which is too large where no two neighbours have one.
    """
    measures = group_of(frames[0], shared, "PixelMeasuresSequence")
    planes = [group_of(frame, shared, "PlaneOrientationSequence").ImageOrientationPatient for frame in frames]
    places = [group_of(frame, shared, "PlanePositionSequence").ImagePositionPatient for frame in frames]
    axes, positions = np.asarray(planes, dtype=np.float64), np.asarray(places, dtype=np.float64)
    along_row, along_column = axes[0][:3], axes[0][3:]
    normal = np.cross(along_row, along_column)
    normal /= np.linalg.norm(normal)
    depths = (positions - positions[0]) @ normal
    lowest = int(depths.argmin())
    depths = depths - depths[lowest]
    gaps = np.diff(np.unique(depths))
    nearest = min(gaps[gaps > SAME_POSITION_MM], default=measures.get("SliceThickness") or 1)
    step = abs(float(measures.get("SpacingBetweenSlices") or slice_spacing_mm or nearest))
    slices = np.rint(depths / step)
    sideways = positions - positions[lowest] - np.outer(depths, normal)
    if not (np.abs(axes - axes[0]).max() <= SAME_DIRECTION and np.abs(sideways).max() <= DRIFT_MM):  # or NaN
        raise volume_error("mixed-orientation", path, "frames that are not parallel", "one stack", EXPORT_FILE)
    if not (np.abs(depths / step - slices).max() <= OFF_GRID and slices.max() < MAX_SLICES):
        found = f"frames up to {depths.max():.3f} mm apart"
        raise volume_error("uneven-spacing", path, found, f"slices every {step:.3f} mm", EXPORT_FILE)
    affine = np.eye(4)
    spacing = [float(mm) for mm in measures.PixelSpacing]
    affine[:3, :3] = np.stack([along_row * spacing[1], along_column * spacing[0], normal * step], axis=1)
    affine[:3, 3] = positions[lowest]
    return slices.astype(int).tolist(), LPS_TO_RAS @ affine
