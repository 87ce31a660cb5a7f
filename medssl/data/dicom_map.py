"""Maps of numbers as DICOM Parametric Map files: written for a scan's series through highdicom, read back exactly.

The file lies on the grid that medssl.data.dicom reads the series on, has a frame of 32-bit floats for every slice and
refers to each of them. It carries the patient's data of the series, as an archive needs it; no text made here does.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
from pydicom.uid import UID, ParametricMapStorage

from medssl.core.errors import ConfigError
from medssl.data.dicom_frames import EXPORT_FILE, check_plain, complete_header, file_of_kind, grid_of, group_of, parsed
from medssl.data.dicom_sources import fitted, import_highdicom, new_series, target_and_stack, write_derived
from medssl.data.findings import volume_error
from medssl.data.voxel_grid import Header, Volume

_A_MAP = "a DICOM parametric map"


@dataclass(frozen=True)
class Quantity:
    """What the numbers of a map are: code and unit as (code, scheme, meaning), label (16 characters), series number."""

    code: tuple[str, str, str]
    unit: tuple[str, str, str]
    label: str
    series_number: int = 1001

    @property
    def description(self) -> str:
        return f"{self.code[2]} ({self.unit[2]})"


# no public code says it; those of IBSI that are called entropy are of grey values
ENTROPY = Quantity(("ENTROPY", "99MEDSSL", "Predictive entropy"), ("bit", "UCUM", "bit"), "ENTROPY")


@dataclass(frozen=True, eq=False)
class ParametricMapFile:
    """A DICOM parametric map: its grid, and of every frame its slice and the slope and intercept of its numbers."""

    path: Path
    header: Header
    frames: tuple[tuple[int, float, float], ...]

    def voxels(self) -> np.ndarray:
        """The numbers in their unit (X, Y, Z), float32. Raises DataError where pixels are damaged."""
        columns, rows, _ = self.header.shape
        stored = np.frombuffer(parsed(self.path, _A_MAP).get("FloatPixelData", b""), dtype="<f4")
        if stored.size < len(self.frames) * rows * columns:
            found = f"{stored.nbytes} bytes of pixels for {len(self.frames)} frames"
            raise volume_error("damaged-pixels", self.path, found, "a whole file", EXPORT_FILE)
        array = np.empty(self.header.shape, dtype=np.float32, order="F")
        pixels = stored[: len(self.frames) * rows * columns].reshape(-1, rows, columns)
        for (index, slope, intercept), frame in zip(self.frames, pixels, strict=True):
            exact = (slope, intercept) == (1, 0)
            array[..., index] = (frame if exact else frame * slope + intercept).T
        return array


def write_parametric_map(
    volume: Volume,
    series_dir: str | Path,
    path: str | Path,
    *,
    highest: float = 1.0,
    quantity: Quantity = ENTROPY,
) -> None:
    """Writes the numbers as the DICOM Parametric Map file `path`, for the series in series_dir.

    volume: finite, kept as float32, on the grid of the series in any of the 48 orders and directions of its axes.
    highest: viewers show the numbers from 0 to this; the entropy of C classes reaches log2 C. Raises DataError where
    the volume does not fit the series or is not finite, ConfigError where path or highest cannot be written.
    """
    highdicom = import_highdicom()
    if not 0 < highest < np.inf:
        raise ConfigError(f"highest: {highest}, expected a number above 0: the upper end of what viewers show.")
    path, stack = target_and_stack(path, series_dir)
    with np.errstate(over="ignore"):
        array = fitted(path, volume, series_dir, stack.header).array.astype(np.float32)
    if not np.isfinite(array).all():
        found = f"{int((~np.isfinite(array)).sum())} voxels that are no finite 32-bit numbers"
        raise volume_error("not-finite", path, found, "finite numbers", "Repair the map, or set them to 0.")
    series = new_series(quantity.series_number, quantity.description)
    write_derived(
        path, stack, series_dir, lambda sources: _parametric_map(highdicom, sources, array, highest, quantity, series)
    )


def read_parametric_map(path: str | Path) -> Volume:
    """Numbers of a DICOM Parametric Map file in their unit, float32: axes and affine as the series gives them.

    Raises DataError for anything but one 32-bit float a voxel on parallel, even slices without a gap.
    """
    map_file = open_parametric_map(path)
    return Volume(map_file.voxels(), map_file.header.affine)


def open_parametric_map(path: str | Path) -> ParametricMapFile:
    """Grid and frames of a DICOM Parametric Map file, without pixels. Raises DataError as read_parametric_map."""
    path = Path(path)
    dataset = parsed(path, _A_MAP, stop_before_pixels=True)
    with complete_header(path, _A_MAP):
        _check_kind(path, dataset)
        shared = dataset.SharedFunctionalGroupsSequence[0]
        frames = list(dataset.PerFrameFunctionalGroupsSequence)
        slices, affine = grid_of(path, shared, frames)
        if sorted(slices) != list(range(len(slices))):
            finding = f"{len(slices)} frames on {len(set(slices))} of {max(slices) + 1} slices"
            raise volume_error("missing-slices", path, finding, "one frame a slice", "Save each map as its own file.")
        mappings = [group_of(frame, shared, "RealWorldValueMappingSequence") for frame in frames]
        scales = [(float(item.RealWorldValueSlope), float(item.RealWorldValueIntercept)) for item in mappings]
        shape = (int(dataset.Columns), int(dataset.Rows), len(slices))
    mapped = tuple((index, *scale) for index, scale in zip(slices, scales, strict=True))
    return ParametricMapFile(path, Header(shape, affine, np.dtype(np.float32)), mapped)


def parametric_map_in(path: Path) -> Path | None:
    """The path itself if it is a DICOM parametric map, or the one DICOM file of a folder if that is one; else None."""
    return file_of_kind(path, ParametricMapStorage)


def _parametric_map(
    highdicom: Any,
    sources: list[pydicom.Dataset],
    array: np.ndarray,
    highest: float,
    quantity: Quantity,
    series: Mapping[str, Any],
) -> pydicom.Dataset:
    """The map of numbers (X, Y, Z): stored as they are, so that they are their real-world values."""
    code = highdicom.sr.CodedConcept(*quantity.code)
    unit = highdicom.sr.CodedConcept(*quantity.unit)
    mapping = highdicom.pm.RealWorldValueMapping(
        lut_label=quantity.label,
        lut_explanation=quantity.description,
        unit=unit,
        value_range=(min(0.0, float(array.min())), max(highest, float(array.max()))),
        slope=1,
        intercept=0,
        quantity_definition=code,
    )
    window = highdicom.VOILUTTransformation(
        window_center=[highest / 2],
        window_width=[highest],
        window_explanation=[quantity.description],
        voi_lut_function="LINEAR_EXACT",  # LINEAR is not made for windows that are narrower than 1
    )
    parametric_map = highdicom.pm.ParametricMap(
        source_images=sources,
        pixel_array=np.ascontiguousarray(array.T),
        contains_recognizable_visual_features=False,
        real_world_value_mappings=[mapping],
        voi_lut_transformations=[window],
        content_label=quantity.label,
        content_description=quantity.description,
        **series,
    )
    # asked for where the body part is paired, empty if unknown
    parametric_map.Laterality = sources[0].get("Laterality") or ""
    return parametric_map


def _check_kind(path: Path, dataset: pydicom.Dataset) -> None:
    """Raises DataError unless the file is a parametric map of plain 32-bit floats that describes each frame."""
    kind = UID(dataset.SOPClassUID)
    if kind != ParametricMapStorage:
        way_out = "Give the parametric map itself."
        raise volume_error("no-parametric-map", path, kind.name, ParametricMapStorage.name, way_out)
    if dataset.BitsAllocated != 32:
        found = f"pixels of {dataset.BitsAllocated} bits"
        raise volume_error("unsupported", path, found, "32-bit floats", "Save the map as 32-bit floats.")
    check_plain(path, dataset)
