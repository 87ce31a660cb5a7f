"""Label maps as DICOM SEG files: written for a scan's series through highdicom, read back voxel for voxel.

The file lies on the grid that medssl.data.dicom reads the series on, has one binary segment a structure and refers to
the series slice by slice. It carries the patient's data of the series, as an archive needs it; no text made here does.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
from pydicom.config import disable_value_validation
from pydicom.errors import InvalidDicomError
from pydicom.filereader import read_file_meta_info
from pydicom.uid import UID, ImplicitVRLittleEndian, SegmentationStorage, generate_uid
from pydicom.valuerep import format_number_as_ds

from medssl import __version__
from medssl.data.dicom import DRIFT_MM, SAME_DIRECTION, SAME_POSITION_MM, DicomStack, is_dicom_file, read_dicom_stack
from medssl.data.findings import volume_error
from medssl.data.geometry import LPS_TO_RAS, Header, Volume, affine_faults, grid_mismatches
from medssl.errors import ConfigError, DataError
from medssl.files import write_atomically

MAX_ID = 2**16 - 1
MAX_SLICES = 10_000
OFF_GRID = 0.1  # of the slice spacing, between a frame and its slice
SERIES_NUMBER = 1000

_LABEL_ID = re.compile(r"medssl label (\d+)")
_NEEDED = ("SOPClassUID", "SOPInstanceUID", "SeriesInstanceUID", "StudyInstanceUID", "FrameOfReferenceUID", "Modality")
_MAY_BE_EMPTY = ("PatientID", "AccessionNumber", "StudyID")
# highdicom judges these and quotes what it does not like in a log line or an error: it gets none of them
_PERSONAL = ("PatientName", "PatientBirthDate", "PatientSex", "StudyDate", "StudyTime")
_EXPORT = "Export the series again from the PACS or the scanner."
_EXPORT_SEG = "Export the segmentation again, or convert it to .nii.gz."


@dataclass(frozen=True, eq=False)
class SegmentationFile:
    """A DICOM SEG file: its grid, its structures (label id to name), and of every frame its slice and label id."""

    path: Path
    header: Header
    structures: Mapping[int, str]
    frames: tuple[tuple[int, int], ...]

    def voxels(self) -> np.ndarray:
        """Label map (X, Y, Z), uint8 or uint16. Raises DataError where pixels are damaged or segments overlap."""
        array = np.zeros(self.header.shape, dtype=self.header.dtype, order="F")
        for (index, label_id), bits in zip(self.frames, self._bits(), strict=True):
            plane, inside = array[..., index], bits.T == 1
            if plane[inside].any():
                found = f"segment '{self.structures[label_id]}' overlaps another one"
                way_out = "Save each segment as its own file."
                raise volume_error("overlap", self.path, found, "one structure a voxel", way_out)
            plane[inside] = label_id
        return array

    def _bits(self) -> Iterator[np.ndarray]:
        """Every frame (rows, columns). Frames follow one another bit by bit, so most begin within a byte."""
        # not pydicom's iter_pixels: 3.0.2 loses the last bits of such frames and does not miss what was cut off
        columns, rows, _ = self.header.shape
        packed, size = np.frombuffer(_parsed(self.path).get("PixelData", b""), dtype=np.uint8), rows * columns
        if len(packed) * 8 < len(self.frames) * size:
            found = f"{len(packed)} bytes of pixels for {len(self.frames)} frames"
            raise volume_error("damaged-pixels", self.path, found, "a whole file", _EXPORT_SEG)
        for begin in range(0, len(self.frames) * size, size):
            bits = np.unpackbits(packed[begin // 8 : (begin + size + 7) // 8], bitorder="little")
            yield bits[begin % 8 : begin % 8 + size].reshape(rows, columns)


def write_segmentation(
    labels: Volume,
    series_dir: str | Path,
    path: str | Path,
    structures: Mapping[int, str],
    *,
    algorithm: str | None = f"medssl {__version__}",
) -> None:
    """Writes the label map as the DICOM SEG file `path`, for the series in series_dir.

    labels: on the grid of the series in any of the 48 orders and directions of its axes. structures: label id (1 to
    65535) to name, one segment each; a structure without a voxel keeps its segment, which then has no frame: it was
    looked for and not found. algorithm: what made the labels, None for a person. Raises DataError where the labels do
    not fit the series or hold an id without a name, ConfigError where structures or path cannot be written.
    """
    highdicom = _highdicom()
    path, series_dir = Path(path), Path(series_dir)
    if path.resolve().parent == series_dir.resolve():
        raise ConfigError(f"{path}: would become a file of the series itself. Choose another folder.")
    _check_names(structures, algorithm)
    stack = read_dicom_stack(series_dir)
    numbers = _segment_numbers(path, _fitted(path, labels, series_dir, stack.header).array, structures)
    descriptions = _descriptions(highdicom, structures, algorithm)
    try:
        with disable_value_validation():  # which would quote odd values in the log
            sources, personal = _source_images(stack)
            segmentation = _segmentation(highdicom, sources, numbers, descriptions)
            segmentation.update(personal)
            segmentation.SpecificCharacterSet = "ISO_IR 192"  # UTF-8: the names of structures are anyone's
            write_atomically(path, segmentation.save_as)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        # from None: the text may quote the values of elements
        found = f"highdicom refuses the series ({type(error).__name__})"
        raise volume_error("bad-series", series_dir, found, "valid DICOM", _EXPORT) from None


def read_segmentation(path: str | Path) -> Volume:
    """Label map of a DICOM SEG file, uint8 or uint16: order of axes and affine as the series gives them.

    Ids are those given to write_segmentation; in files of other programs the numbers of the segments. Such a file that
    leaves out empty slices without listing all slices of its series in order gives the part it has, in its place.
    Raises DataError for anything but binary segments on parallel, even slices.
    """
    found = open_segmentation(path)
    return Volume(found.voxels(), found.header.affine)


def open_segmentation(path: str | Path) -> SegmentationFile:
    """Grid, structures and frames of a DICOM SEG file, without pixels. Raises DataError as read_segmentation."""
    path = Path(path)
    if not path.is_file():
        raise volume_error("missing", path, "not found", "a DICOM SEG file", "Check the path.")
    dataset = _parsed(path, stop_before_pixels=True)
    try:
        _check_kind(path, dataset)
        ids, structures = _structures(dataset)
        shared = dataset.SharedFunctionalGroupsSequence[0]
        frames = list(dataset.PerFrameFunctionalGroupsSequence)
        numbers = [_group(frame, shared, "SegmentIdentificationSequence").ReferencedSegmentNumber for frame in frames]
        slices, depth, affine = _grid(path, dataset, shared, frames)
        labelled = tuple((index, ids[int(number)]) for index, number in zip(slices, numbers, strict=True))
        shape = (int(dataset.Columns), int(dataset.Rows), depth)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        # from None: pydicom's text may quote the values of elements
        found = f"incomplete ({type(error).__name__})"
        raise volume_error("bad-header", path, found, "a DICOM SEG file", _EXPORT_SEG) from None
    dtype = np.dtype(np.uint8 if max(structures) < 256 else np.uint16)
    return SegmentationFile(path, Header(shape, affine, dtype), structures, labelled)


def segmentation_in(path: Path) -> Path | None:
    """The path itself if it is a DICOM SEG file, or the one DICOM file of a folder if that is one; else None."""
    if path.is_dir():
        files = list(itertools.islice((file for file in sorted(path.iterdir()) if is_dicom_file(file)), 2))
        return segmentation_in(files[0]) if len(files) == 1 else None
    if not is_dicom_file(path):
        return None
    return path if read_file_meta_info(path).get("MediaStorageSOPClassUID") == SegmentationStorage else None


def reordered(labels: Volume, like: Header) -> Volume:
    """The same voxels, the array's axes flipped and exchanged so that they run as those of `like`; no resampling."""
    cosines = np.linalg.inv(like.affine[:3, :3] / like.spacing_mm) @ (labels.affine[:3, :3] / labels.spacing_mm)
    order = max(itertools.permutations(range(3)), key=lambda axes: float(np.abs(cosines[range(3), axes]).sum()))
    array, affine = labels.array.transpose(order), np.eye(4)
    affine[:3, :3], affine[:3, 3] = labels.affine[:3, order], labels.affine[:3, 3]
    for axis, source in enumerate(order):
        if cosines[axis, source] < 0:
            affine[:3, 3] += affine[:3, axis] * (array.shape[axis] - 1)
            affine[:3, axis] *= -1
            array = np.flip(array, axis)
    return Volume(array, affine)


def _highdicom() -> Any:
    try:
        import highdicom  # noqa: PLC0415  (an extra)
    except ImportError as error:
        raise ConfigError("DICOM SEG: highdicom is not installed. Run pip install 'medssl[dicom]'.") from error
    return highdicom


def _check_names(structures: Mapping[int, str], algorithm: str | None) -> None:
    if not structures:
        raise ConfigError("structures: none, expected label ids with names, such as {1: 'liver'}.")
    for label_id in structures:
        if not 1 <= label_id <= MAX_ID:
            raise ConfigError(f"structures: label id {label_id}, expected 1 to {MAX_ID}; 0 is the background.")
    for name in (*structures.values(), *([] if algorithm is None else [algorithm])):
        if not 1 <= len(name.strip()) <= len(name) <= 64 or "\\" in name or not name.isprintable():
            raise ConfigError(f"name {name!r}, expected 1 to 64 characters without a backslash. Rename it.")


def _fitted(path: Path, labels: Volume, series_dir: Path, header: Header) -> Volume:
    """The labels in the order of the series' axes. Raises DataError where they lie on another grid."""
    if labels.array.ndim != 3:
        found = f"labels of shape {labels.shape}"
        raise volume_error(f"{labels.array.ndim}-d", path, found, "3-D (X, Y, Z)", "Give one label map.")
    faults = affine_faults(labels.affine)
    if not faults:
        labels = reordered(labels, header)
        faults = list(grid_mismatches(header, labels))
    if faults:
        raise DataError(f"{path}: the labels do not fit the series {series_dir}: {faults[0].message}")
    if labels.shape[0] * labels.shape[1] < 8:  # highdicom 0.28 then starts every frame on a new byte
        found = f"slices of {labels.shape[0]} x {labels.shape[1]} pixels"
        raise volume_error("too-small", series_dir, found, "at least 8 pixels a slice", "Write .nii.gz instead.")
    return labels


def _segment_numbers(path: Path, array: np.ndarray, structures: Mapping[int, str]) -> np.ndarray:
    """Label ids replaced by 1, 2, .. in their order, as DICOM numbers segments. Raises DataError for ids not named."""
    number_of = np.zeros(MAX_ID + 1, dtype=np.uint8 if len(structures) < 256 else np.uint16)
    number_of[sorted(structures)] = np.arange(1, len(structures) + 1)
    with np.errstate(invalid="ignore"):
        ids = array.astype(np.uint16)
    numbers = number_of[ids]
    if (ids != array).any() or (numbers[ids > 0] == 0).any():
        unnamed = sorted(set(np.unique(array).tolist()) - {0, *structures})
        found = f"label ids {unnamed[:10]} without a name"
        way_out = "Name them in `structures`, or set their voxels to 0."
        raise volume_error("label-ids", path, found, f"0 and {sorted(structures)[:10]}", way_out)
    return numbers


def _source_images(stack: DicomStack) -> tuple[list[pydicom.Dataset], pydicom.Dataset]:
    """Headers of the slices, on the even grid they are read on, without personal elements; and the first one's."""
    sources: list[pydicom.Dataset] = [pydicom.dcmread(file, stop_before_pixels=True) for file in stack.files]
    first = sources[0]
    for file, source in zip(stack.files, sources, strict=True):
        for name in ("SOPClassUID", "SOPInstanceUID"):
            if not source.get(name):  # some anonymisers empty them
                setattr(source, name, source.file_meta.get(f"MediaStorage{name}"))
        for name in _NEEDED:
            if not source.get(name):
                way_out = f"{_EXPORT} Else write .nii.gz."
                raise volume_error("missing-uid", file, f"no {name}", "one, to refer to the series", way_out)
        if any(source[name].value != first[name].value for name in ("StudyInstanceUID", "FrameOfReferenceUID")):
            found = f"another study or frame of reference than {stack.files[0].name}"
            raise volume_error("mixed-series", file, found, "those of one scan", "Put one series alone into a folder.")
    personal = pydicom.Dataset()
    for name in _PERSONAL:
        if name in first:
            personal.add(copy(first[name]))
    affine, spacing_mm = LPS_TO_RAS @ stack.header.affine, stack.header.spacing_mm
    columns_mm, rows_mm, step_mm = _decimals(spacing_mm)
    directions = _decimals((affine[:3, :2] / spacing_mm[:2]).T.ravel())
    for index, source in enumerate(sources):
        for name in _PERSONAL:
            setattr(source, name, None)
        for name in _MAY_BE_EMPTY:
            source.setdefault(name, None)
        source.ImagePositionPatient = _decimals((affine @ [0, 0, index, 1])[:3])
        source.ImageOrientationPatient = directions
        source.PixelSpacing, source.SpacingBetweenSlices = [rows_mm, columns_mm], step_mm
        source.SliceThickness = source.get("SliceThickness") or step_mm
    return sources, personal


def _decimals(values: Iterable[float]) -> list[str]:
    """The numbers as DICOM writes them, in 16 characters."""
    return [format_number_as_ds(float(value)) for value in values]


def _descriptions(highdicom: Any, structures: Mapping[int, str], algorithm: str | None) -> list[Any]:
    """One description a structure: its name, a code that fits all of them, and the label id as text."""
    made_by: dict[str, Any] = {"algorithm_type": "MANUAL"}
    if algorithm is not None:
        family = highdicom.sr.CodedConcept("123110", "DCM", "Artificial Intelligence")
        identification = highdicom.AlgorithmIdentificationSequence(algorithm, family, __version__)
        made_by = {"algorithm_type": "AUTOMATIC", "algorithm_identification": identification}
    tissue = highdicom.sr.CodedConcept("85756007", "SCT", "Tissue")
    items = []
    for number, label_id in enumerate(sorted(structures), start=1):
        item = highdicom.seg.SegmentDescription(number, structures[label_id], tissue, tissue, **made_by)
        item.SegmentDescription = f"medssl label {label_id}"
        items.append(item)
    return items


def _segmentation(
    highdicom: Any, sources: list[pydicom.Dataset], numbers: np.ndarray, descriptions: list[Any]
) -> pydicom.Dataset:
    """The SEG of segment numbers (X, Y, Z); its list of source images is in the order of the slices."""
    filled = bool(numbers.any())
    shown = len(sources) if filled else 1  # a file needs a frame: the first slice, empty
    return highdicom.seg.Segmentation(
        source_images=sources[:shown],
        further_source_images=sources[shown:],
        pixel_array=numbers.T[:shown],
        omit_empty_frames=filled,
        segmentation_type=highdicom.seg.SegmentationTypeValues.BINARY,
        segment_descriptions=descriptions,
        series_instance_uid=generate_uid(),
        series_number=SERIES_NUMBER,
        series_description="Segmentation",
        sop_instance_uid=generate_uid(),
        instance_number=1,
        manufacturer="medssl",
        manufacturer_model_name="medssl",
        software_versions=__version__,
        device_serial_number="none",
    )


def _parsed(path: Path, stop_before_pixels: bool = False) -> pydicom.Dataset:
    try:
        return pydicom.dcmread(path, stop_before_pixels=stop_before_pixels)
    except (InvalidDicomError, EOFError, ValueError, NotImplementedError) as error:
        # from None: pydicom's text may quote the values of elements
        found = f"cannot be parsed ({type(error).__name__})"
        raise volume_error("wrong-magic", path, found, "a DICOM SEG file", _EXPORT_SEG) from None


def _check_kind(path: Path, dataset: pydicom.Dataset) -> None:
    """Raises DataError unless the file holds binary segments, uncompressed, and describes each of its frames."""
    kind = f"{UID(dataset.SOPClassUID).name} {dataset.get('SegmentationType', '')}".strip()
    if kind != f"{SegmentationStorage.name} BINARY":
        way_out = "Save the segmentation as binary segments."
        raise volume_error("no-segmentation", path, kind, f"{SegmentationStorage.name} BINARY", way_out)
    syntax = UID(dataset.file_meta.get("TransferSyntaxUID", ImplicitVRLittleEndian))
    if syntax.is_encapsulated or not syntax.is_little_endian:
        way_out = "Decompress the file with gdcmconv --raw."
        raise volume_error("no-codec", path, f"stored as {syntax.name}", "plain pixels", way_out)
    described = len(dataset.PerFrameFunctionalGroupsSequence)
    if described != dataset.NumberOfFrames or not described:
        found = f"{dataset.NumberOfFrames} frames, {described} of them described"
        raise volume_error("bad-header", path, found, "all", _EXPORT_SEG)


def _structures(dataset: pydicom.Dataset) -> tuple[dict[int, int], dict[int, str]]:
    """Label id of every segment number, and name of every label id."""
    items = list(dataset.SegmentSequence)
    numbers = [int(item.SegmentNumber) for item in items]
    marks = [_LABEL_ID.fullmatch(str(item.get("SegmentDescription", ""))) for item in items]
    ids = [int(mark[1]) for mark in marks if mark is not None]
    if len(set(ids)) < len(items) or not 1 <= min(ids) <= max(ids) <= MAX_ID:
        ids = numbers
    names = [str(item.get("SegmentLabel", f"label {label_id}")) for item, label_id in zip(items, ids, strict=True)]
    return dict(zip(numbers, ids, strict=True)), dict(zip(ids, names, strict=True))


def _group(frame: pydicom.Dataset, shared: pydicom.Dataset, name: str) -> pydicom.Dataset:
    """The one item of a functional group, which a frame has for itself or shares with all."""
    return (frame if name in frame else shared)[name][0]


def _grid(
    path: Path, dataset: pydicom.Dataset, shared: pydicom.Dataset, frames: list[pydicom.Dataset]
) -> tuple[list[int], int, np.ndarray]:
    """Slice of every frame, number of slices, and affine to RAS mm. Raises DataError where the slices are not even."""
    measures = _group(frames[0], shared, "PixelMeasuresSequence")
    planes = [_group(frame, shared, "PlaneOrientationSequence").ImageOrientationPatient for frame in frames]
    places = [_group(frame, shared, "PlanePositionSequence").ImagePositionPatient for frame in frames]
    axes, positions = np.asarray(planes, dtype=np.float64), np.asarray(places, dtype=np.float64)
    along_row, along_column = axes[0][:3], axes[0][3:]
    normal = np.cross(along_row, along_column)
    normal /= np.linalg.norm(normal)
    depths = (positions - positions[0]) @ normal
    lowest = int(depths.argmin())
    depths = depths - depths[lowest]
    gaps = np.diff(np.unique(depths))
    nearest = min(gaps[gaps > SAME_POSITION_MM], default=measures.get("SliceThickness") or 1)
    step = abs(float(measures.get("SpacingBetweenSlices") or nearest))
    slices = np.rint(depths / step)
    sideways = positions - positions[lowest] - np.outer(depths, normal)
    if not (np.abs(axes - axes[0]).max() <= SAME_DIRECTION and np.abs(sideways).max() <= DRIFT_MM):  # or NaN
        raise volume_error("mixed-orientation", path, "frames that are not parallel", "one stack", _EXPORT_SEG)
    if not (np.abs(depths / step - slices).max() <= OFF_GRID and slices.max() < MAX_SLICES):
        found = f"frames up to {depths.max():.3f} mm apart"
        raise volume_error("uneven-spacing", path, found, f"slices every {step:.3f} mm", _EXPORT_SEG)
    before, depth = _slices_of_series(dataset, frames, slices.astype(int).tolist())
    affine = np.eye(4)
    spacing = [float(mm) for mm in measures.PixelSpacing]
    affine[:3, :3] = np.stack([along_row * spacing[1], along_column * spacing[0], normal * step], axis=1)
    affine[:3, 3] = positions[lowest] - before * step * normal
    return [before + int(index) for index in slices], depth, LPS_TO_RAS @ affine


def _slices_of_series(dataset: pydicom.Dataset, frames: list[pydicom.Dataset], slices: list[int]) -> tuple[int, int]:
    """How many slices of the series lie before the first frame, and how many it has.

    Empty slices have no frame, but the file lists all slices of its series. Where that list is not in the order of the
    slices, there are none before and after.
    """
    listed = [
        str(instance.ReferencedSOPInstanceUID)
        for series in dataset.get("ReferencedSeriesSequence", [])
        for instance in series.ReferencedInstanceSequence
    ]
    place = {uid: index for index, uid in enumerate(listed)}
    before = set()
    for frame, index in zip(frames, slices, strict=True):
        sources = [
            image for item in frame.get("DerivationImageSequence", []) for image in item.get("SourceImageSequence", [])
        ]
        before |= {place.get(str(image.ReferencedSOPInstanceUID), -1) - index for image in sources} or {-1}
    offset = before.pop()
    if before or offset < 0 or offset + max(slices) >= len(listed):
        return 0, max(slices) + 1
    return offset, len(listed)
