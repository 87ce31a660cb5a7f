"""Label maps as DICOM SEG files: written for a scan's series through highdicom, read back voxel for voxel.

The file lies on the grid that medssl.data.dicom reads the series on, has one binary segment a structure and refers to
the series slice by slice. It carries the patient's data of the series, as an archive needs it; no text made here does.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
from pydicom.uid import UID, SegmentationStorage

from medssl import __version__
from medssl.core.errors import ConfigError
from medssl.data.dicom_frames import EXPORT_FILE, check_plain, complete_header, file_of_kind, grid_of, group_of, parsed
from medssl.data.dicom_sources import fitted, import_highdicom, new_series, target_and_stack, write_derived
from medssl.data.findings import volume_error
from medssl.data.voxel_grid import Header, Volume, reordered

__all__ = [
    "MAX_ID",
    "SegmentStyle",
    "SegmentationFile",
    "open_segmentation",
    "read_segmentation",
    "reordered",
    "segmentation_in",
    "write_segmentation",
]

MAX_ID = 2**16 - 1

_LABEL_ID = re.compile(r"medssl label (\d+)")
_A_SEG = "a DICOM SEG file"


@dataclass(frozen=True)
class SegmentStyle:
    """How the segments present themselves: the series' number and name, what they are by code, their colours.

    category and kind: (code, scheme, meaning), the same for all segments. colours: label id to red, green, blue (0 to
    255); viewers choose those of the others.
    """

    series_number: int = 1000
    series_description: str = "Segmentation"
    category: tuple[str, str, str] = ("85756007", "SCT", "Tissue")
    kind: tuple[str, str, str] = ("85756007", "SCT", "Tissue")
    colours: Mapping[int, tuple[int, int, int]] = field(default_factory=dict)


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
        packed, size = np.frombuffer(parsed(self.path, _A_SEG).get("PixelData", b""), dtype=np.uint8), rows * columns
        if len(packed) * 8 < len(self.frames) * size:
            found = f"{len(packed)} bytes of pixels for {len(self.frames)} frames"
            raise volume_error("damaged-pixels", self.path, found, "a whole file", EXPORT_FILE)
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
    style: SegmentStyle | None = None,
) -> None:
    """Writes the label map as the DICOM SEG file `path`, for the series in series_dir.

    labels: on the grid of the series in any of the 48 orders and directions of its axes. structures: label id (1 to
    65535) to name, one segment each; a structure without a voxel keeps its segment, which then has no frame: it was
    looked for and not found. algorithm: what made the labels, None for a person. Raises DataError where the labels do
    not fit the series or hold an id without a name, ConfigError where structures or path cannot be written.
    """
    highdicom, style = import_highdicom(), style or SegmentStyle()
    _check_names(structures, algorithm)
    path, stack = target_and_stack(path, series_dir)
    labels = fitted(path, labels, series_dir, stack.header)
    if labels.shape[0] * labels.shape[1] < 8:  # highdicom 0.28 then starts every frame on a new byte
        found = f"slices of {labels.shape[0]} x {labels.shape[1]} pixels"
        raise volume_error("too-small", series_dir, found, "at least 8 pixels a slice", "Write .nii.gz instead.")
    numbers = _segment_numbers(path, labels.array, structures)
    descriptions = _descriptions(highdicom, structures, algorithm, style)
    series = new_series(style.series_number, style.series_description)
    write_derived(
        path, stack, series_dir, lambda sources: _segmentation(highdicom, sources, numbers, descriptions, series)
    )


def read_segmentation(path: str | Path) -> Volume:
    """Label map of a DICOM SEG file, uint8 or uint16: order of axes and affine as the series gives them.

    Ids are those given to write_segmentation; in files of other programs the numbers of the segments. Such a file that
    leaves out empty slices without listing all slices of its series in order gives the part it has, in its place.
    Raises DataError for anything but binary segments on parallel, even slices.
    """
    segmentation_file = open_segmentation(path)
    return Volume(segmentation_file.voxels(), segmentation_file.header.affine)


def open_segmentation(path: str | Path, slice_spacing_mm: float | None = None) -> SegmentationFile:
    """Grid, structures and frames of a DICOM SEG file, without pixels. Raises DataError as read_segmentation.

    slice_spacing_mm: that of the series, for files that do not tell it and need not have frames on neighbouring slices.
    """
    path = Path(path)
    dataset = parsed(path, _A_SEG, stop_before_pixels=True)
    with complete_header(path, _A_SEG):
        _check_kind(path, dataset)
        ids, structures = _structures(dataset)
        shared = dataset.SharedFunctionalGroupsSequence[0]
        frames = list(dataset.PerFrameFunctionalGroupsSequence)
        numbers = [group_of(frame, shared, "SegmentIdentificationSequence").ReferencedSegmentNumber for frame in frames]
        slices, affine = grid_of(path, shared, frames, slice_spacing_mm)
        before, depth = _slices_of_series(dataset, frames, slices)
        affine[:3, 3] -= before * affine[:3, 2]
        labelled = tuple((before + index, ids[int(number)]) for index, number in zip(slices, numbers, strict=True))
        shape = (int(dataset.Columns), int(dataset.Rows), depth)
    dtype = np.dtype(np.uint8 if max(structures) < 256 else np.uint16)
    return SegmentationFile(path, Header(shape, affine, dtype), structures, labelled)


def segmentation_in(path: Path) -> Path | None:
    """The path itself if it is a DICOM SEG file, or the one DICOM file of a folder if that is one; else None."""
    return file_of_kind(path, SegmentationStorage)


def _check_names(structures: Mapping[int, str], algorithm: str | None) -> None:
    if not structures:
        raise ConfigError("structures: none, expected label ids with names, such as {1: 'liver'}.")
    for label_id in structures:
        if not 1 <= label_id <= MAX_ID:
            raise ConfigError(f"structures: label id {label_id}, expected 1 to {MAX_ID}; 0 is the background.")
    for name in (*structures.values(), *([] if algorithm is None else [algorithm])):
        if not 1 <= len(name.strip()) <= len(name) <= 64 or "\\" in name or not name.isprintable():
            raise ConfigError(f"name {name!r}, expected 1 to 64 characters without a backslash. Rename it.")


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


def _descriptions(
    highdicom: Any, structures: Mapping[int, str], algorithm: str | None, style: SegmentStyle
) -> list[Any]:
    """One description a structure: its name, a code that fits all of them, and the label id as text."""
    made_by: dict[str, Any] = {"algorithm_type": "MANUAL"}
    if algorithm is not None:
        family = highdicom.sr.CodedConcept("123110", "DCM", "Artificial Intelligence")
        identification = highdicom.AlgorithmIdentificationSequence(algorithm, family, __version__)
        made_by = {"algorithm_type": "AUTOMATIC", "algorithm_identification": identification}
    codes = [highdicom.sr.CodedConcept(*code) for code in (style.category, style.kind)]
    items = []
    for number, label_id in enumerate(sorted(structures), start=1):
        rgb = style.colours.get(label_id)
        colour = None if rgb is None else highdicom.color.CIELabColor.from_rgb(*rgb)
        item = highdicom.seg.SegmentDescription(number, structures[label_id], *codes, **made_by, display_color=colour)
        item.SegmentDescription = f"medssl label {label_id}"
        items.append(item)
    return items


def _segmentation(
    highdicom: Any,
    sources: list[pydicom.Dataset],
    numbers: np.ndarray,
    descriptions: list[Any],
    series: Mapping[str, Any],
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
        **series,
    )


def _check_kind(path: Path, dataset: pydicom.Dataset) -> None:
    """Raises DataError unless the file holds binary segments, uncompressed, and describes each of its frames."""
    kind = f"{UID(dataset.SOPClassUID).name} {dataset.get('SegmentationType', '')}".strip()
    if kind != f"{SegmentationStorage.name} BINARY":
        way_out = "Save the segmentation as binary segments."
        raise volume_error("no-segmentation", path, kind, f"{SegmentationStorage.name} BINARY", way_out)
    check_plain(path, dataset)


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
