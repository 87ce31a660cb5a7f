"""Reading a DICOM series as one volume, refusing whatever would place voxels wrongly.

No text made here holds a name, an id, a birth date or a UID of a patient: errors name files only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import pydicom
from pydicom.errors import InvalidDicomError
from pydicom.misc import is_dicom
from pydicom.pixels import get_decoder
from pydicom.uid import (
    UID,
    DeflatedExplicitVRLittleEndian,
    ExplicitVRBigEndian,
    ExplicitVRLittleEndian,
    ImplicitVRLittleEndian,
)

from medssl.data.findings import volume_error
from medssl.data.voxel_grid import LPS_TO_RAS, Header, Volume

SAME_POSITION_MM = 0.001
SAME_DIRECTION = 1e-4  # per component of ImageOrientationPatient
STEP_TOLERANCE = 0.01  # of the slice spacing
UNIT_TOLERANCE = 1e-3
DRIFT_MM = 0.1  # sideways, over the whole stack, before it counts as gantry tilt

_UNCOMPRESSED = (
    ImplicitVRLittleEndian,
    ExplicitVRLittleEndian,
    ExplicitVRBigEndian,
    DeflatedExplicitVRLittleEndian,
)
_READ_TAGS = (
    *("SeriesInstanceUID", "PatientID", "Rows", "Columns", "NumberOfFrames", "SamplesPerPixel", "PixelSpacing"),
    *("ImageOrientationPatient", "ImagePositionPatient", "SpacingBetweenSlices", "SliceThickness"),
)
_ONE_SERIES = "Put one series alone into a folder."
_CONVERT = "Convert the series with dcm2niix, which handles this."
_EXPORT = "Export the series again from the PACS or the scanner."


@dataclass(frozen=True)
class Series:
    """The image files of one series of a folder, sorted by name."""

    uid: str
    files: tuple[Path, ...]


@dataclass(frozen=True, eq=False)
class DicomStack:
    """Slices of one series in the order of their place along the normal; voxels() decodes them."""

    files: tuple[Path, ...]
    header: Header

    def voxels(self) -> np.ndarray:
        """Rescaled voxels (X, Y, Z), float32. Raises DataError where a slice is damaged."""
        array = np.empty(self.header.shape, dtype=np.float32, order="F")
        for index, file in enumerate(self.files):
            array[..., index] = _decoded(file).T
        return array


def read_dicom_series(path: str | Path) -> Volume:
    """Volume of the one series in a folder, or of one DICOM file, rescaled (CT: Hounsfield units), float32.

    Raises DataError for more than one series, gaps, uneven or doubled slices, gantry tilt, mixed orientations or sizes,
    missing geometry, colour, multi-frame files and compressions without a codec.
    """
    stack = read_dicom_stack(Path(path))
    return Volume(stack.voxels(), stack.header.affine)


def read_dicom_stack(path: Path) -> DicomStack:
    """Sorted files and geometry of the series, without pixels. Raises DataError as read_dicom_series."""
    if not path.exists():
        raise volume_error("missing", path, "not found", "a folder of DICOM slices", "Check the path.")
    if path.is_dir():
        series = series_in(path)
        if not series:
            raise volume_error("no-dicom", path, "no DICOM image", "a folder of DICOM slices", "Check the path.")
        if len(series) > 1:
            listed = "; ".join(f"{stored.files[0].name} and {len(stored.files) - 1} more" for stored in series)
            raise volume_error("mixed-series", path, f"{len(series)} series ({listed})", "one", _ONE_SERIES)
        files = series[0].files
    else:
        files = (path,)
    slices = [_header(file) for file in files]
    for file, dataset in zip(files, slices, strict=True):
        _check_slice(file, dataset)
    return _stacked(path, files, slices)


def series_in(folder: str | Path) -> list[Series]:
    """Image series among the folder's own files (not below), the largest first."""
    files: dict[str, list[Path]] = {}
    for file in sorted(Path(folder).iterdir()):
        if not is_dicom_file(file):
            continue
        header = _header(file)
        if "Rows" in header:
            files.setdefault(str(header.get("SeriesInstanceUID", "")), []).append(file)
    all_series = [Series(uid, tuple(names)) for uid, names in files.items()]
    return sorted(all_series, key=lambda series: len(series.files), reverse=True)


def patient_key(path: str | Path) -> str:
    """First 12 hex digits of the SHA-256 of PatientID: equal for one patient, and the id itself is written nowhere.

    path: a DICOM file or a folder of them. Raises DataError where there is none or PatientID is empty.
    """
    path = Path(path)
    file = next((file for file in sorted(path.iterdir()) if is_dicom_file(file)), None) if path.is_dir() else path
    if file is None:
        raise volume_error("no-dicom", path, "no DICOM file", "a folder of DICOM slices", "Check the path.")
    patient = str(_header(file).get("PatientID", "")).strip()
    if not patient:
        raise volume_error("no-patient", file, "no PatientID", "one", "Group the cases by patient yourself.")
    return sha256(patient.encode()).hexdigest()[:12]


def is_dicom_file(path: Path) -> bool:
    """Whether the file bears DICOM's mark (DICM after 128 bytes)."""
    return path.is_file() and is_dicom(path)


def _header(file: Path) -> pydicom.Dataset:
    """The elements that place a slice; names and birth dates are not even parsed."""
    try:
        return pydicom.dcmread(file, stop_before_pixels=True, specific_tags=list(_READ_TAGS))
    except (InvalidDicomError, EOFError, ValueError, NotImplementedError) as error:
        # from None: pydicom's text may quote the values of elements
        kind = type(error).__name__
        raise volume_error("wrong-magic", file, f"cannot be parsed ({kind})", "a DICOM file", _EXPORT) from None


def _check_slice(file: Path, dataset: pydicom.Dataset) -> None:
    """Raises DataError unless the slice is grey, single-frame, decodable and says where it lies."""
    if "Rows" not in dataset or "Columns" not in dataset:
        raise volume_error("no-dicom", file, "no image", "a DICOM slice", "Choose the series of the scan itself.")
    if int(dataset.get("NumberOfFrames", 1) or 1) > 1:
        raise volume_error("multi-frame", file, "multi-frame (enhanced) DICOM", "one slice a file", _CONVERT)
    if int(dataset.get("SamplesPerPixel", 1)) != 1:
        raise volume_error("colour", file, "colour pixels", "grey values", "Choose the series of the scan itself.")
    for name, length in (("PixelSpacing", 2), ("ImageOrientationPatient", 6), ("ImagePositionPatient", 3)):
        if len(_numbers(dataset, name)) != length:
            code = "missing-pixel-spacing" if name == "PixelSpacing" else "missing-position"
            raise volume_error(code, file, f"no {name}", f"{length} numbers", _EXPORT)
    axes = _numbers(dataset, "ImageOrientationPatient")
    if abs(np.linalg.norm(np.cross(axes[:3], axes[3:])) - 1) > UNIT_TOLERANCE:
        expected = "two perpendicular unit vectors"
        raise volume_error("bad-orientation", file, f"ImageOrientationPatient {axes.tolist()}", expected, _EXPORT)
    _check_codec(file, UID(dataset.file_meta.get("TransferSyntaxUID", ImplicitVRLittleEndian)))


def _numbers(dataset: pydicom.Dataset, name: str) -> np.ndarray:
    """Values of an element, empty where it is missing or not finite numbers."""
    try:
        values = np.atleast_1d(np.asarray(dataset.get(name), dtype=np.float64))
    except (TypeError, ValueError):
        return np.empty(0)
    return values if np.isfinite(values).all() else np.empty(0)


def _check_codec(file: Path, syntax: UID) -> None:
    if syntax in _UNCOMPRESSED:
        return
    try:
        decodable = get_decoder(syntax).is_available
    except NotImplementedError:
        decodable = False
    if not decodable:
        way_out = "Run pip install 'medssl[dicom]', or decompress the series with gdcmconv --raw."
        raise volume_error("no-codec", file, f"compressed as {syntax.name}", "a compression with a codec", way_out)


def _stacked(path: Path, files: Sequence[Path], slices: Sequence[pydicom.Dataset]) -> DicomStack:
    """Sorted stack. Orientation, size, spacing and place of every slice are compared with the first one's."""
    first = slices[0]
    axes = np.stack([_numbers(dataset, "ImageOrientationPatient") for dataset in slices])
    sizes = [(int(dataset.Columns), int(dataset.Rows)) for dataset in slices]
    pixel_mm = np.stack([_numbers(dataset, "PixelSpacing") for dataset in slices])
    for index, file in enumerate(files):
        if np.abs(axes[index] - axes[0]).max() > SAME_DIRECTION:
            found = f"another orientation than {files[0].name}"
            raise volume_error("mixed-orientation", file, found, "one orientation", _ONE_SERIES)
        if sizes[index] != sizes[0] or not np.allclose(pixel_mm[index], pixel_mm[0], rtol=1e-3):
            found = f"{sizes[index]} pixels of {tuple(pixel_mm[index])} mm, {files[0].name} has {sizes[0]} pixels"
            raise volume_error("mixed-size", file, f"{found} of {tuple(pixel_mm[0])} mm", "one size", _ONE_SERIES)
    along_row, along_column = axes[0][:3], axes[0][3:]
    normal = np.cross(along_row, along_column)
    positions = np.stack([_numbers(dataset, "ImagePositionPatient") for dataset in slices])
    order = np.argsort(positions @ normal, kind="stable")
    step = _slice_step(path, [files[index] for index in order], positions[order], normal)
    affine = np.eye(4)
    thickness = abs(float(first.get("SpacingBetweenSlices") or first.get("SliceThickness") or 1.0))
    directions = (along_row * pixel_mm[0][1], along_column * pixel_mm[0][0], normal * (step or thickness))
    affine[:3, :3] = np.stack(directions, axis=1)
    affine[:3, 3] = positions[order[0]]
    header = Header((*sizes[0], len(files)), LPS_TO_RAS @ affine, np.dtype(np.float32))
    return DicomStack(tuple(files[index] for index in order), header)


def _slice_step(path: Path, files: Sequence[Path], positions: np.ndarray, normal: np.ndarray) -> float | None:
    """Distance of neighbouring slices in mm, None for a single slice. Raises DataError where it is not constant."""
    if len(files) == 1:
        return None
    depths = positions @ normal
    steps = np.diff(depths)
    if steps.min() < SAME_POSITION_MM:
        twin = int(steps.argmin())
        found = f"same position as {files[twin].name}"
        raise volume_error("duplicate-position", files[twin + 1], found, "one slice a position", _ONE_SERIES)
    sideways = positions - positions[0] - np.outer(depths - depths[0], normal)
    drift = float(np.linalg.norm(sideways, axis=1).max())
    if drift > DRIFT_MM:
        found = f"slices shifted sideways by up to {drift:.2f} mm (gantry tilt)"
        raise volume_error("gantry-tilt", path, found, f"at most {DRIFT_MM} mm", _CONVERT)
    usual = float(np.sort(steps)[(len(steps) - 1) // 2])
    times = steps / usual
    if (np.abs(times - 1) <= STEP_TOLERANCE).all():
        return float((depths[-1] - depths[0]) / (len(files) - 1))
    worst = int(np.abs(times - 1).argmax())
    where = f"{steps[worst]:.3f} mm between {files[worst].name} and {files[worst + 1].name}"
    if (np.abs(times - np.rint(times)) <= STEP_TOLERANCE * times).all():
        missing = int((np.rint(times) - 1).sum())
        found = f"{missing} missing slices ({where})"
        raise volume_error("missing-slices", path, found, f"a slice every {usual:.3f} mm", _EXPORT)
    raise volume_error("uneven-spacing", path, f"uneven slices ({where})", f"{usual:.3f} mm", _CONVERT)


def _decoded(file: Path) -> np.ndarray:
    """Rescaled pixels (rows, columns) of one slice, float32."""
    try:
        dataset = pydicom.dcmread(file)
        pixels = dataset.pixel_array.astype(np.float32)
    except Exception:  # codecs raise whatever they like
        raise volume_error("damaged-pixels", file, "pixels cannot be decoded", "a whole slice", _EXPORT) from None
    slope, intercept = dataset.get("RescaleSlope"), dataset.get("RescaleIntercept")
    return pixels * np.float32(1 if slope is None else slope) + np.float32(0 if intercept is None else intercept)
