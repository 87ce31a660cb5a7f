"""What every DICOM file that is made from a series needs: voxels in the series' order, its slices to refer to, a name.

A file made here carries the patient's data of the series, as an archive needs it; no text made here does.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any

import pydicom
from pydicom.config import disable_value_validation
from pydicom.uid import generate_uid
from pydicom.valuerep import format_number_as_ds

from medssl import __version__
from medssl.core.errors import ConfigError, DataError
from medssl.core.files import write_atomically
from medssl.data.dicom import DicomStack, is_dicom_file, read_dicom_stack
from medssl.data.findings import volume_error
from medssl.data.voxel_grid import LPS_TO_RAS, Header, Volume, affine_faults, grid_mismatches, reordered

_NEEDED = ("SOPClassUID", "SOPInstanceUID", "SeriesInstanceUID", "StudyInstanceUID", "FrameOfReferenceUID", "Modality")
_MAY_BE_EMPTY = ("PatientID", "AccessionNumber", "StudyID")
# highdicom judges these and quotes what it does not like in a log line or an error: it gets none of them
_PERSONAL = ("PatientName", "PatientBirthDate", "PatientSex", "StudyDate", "StudyTime")
_EXPORT = "Export the series again from the PACS or the scanner."


def import_highdicom() -> Any:
    """The module highdicom. Raises ConfigError that says how to install it."""
    try:
        import highdicom  # noqa: PLC0415  (an extra)
    except ImportError as error:
        raise ConfigError("DICOM files: highdicom is not installed. Run pip install 'medssl[dicom]'.") from error
    return highdicom


def require_series(series_dir: str | Path) -> None:
    """Raises DataError for a file that is no DICOM, so that no DICOM file can refer to it."""
    path = Path(series_dir)
    if path.exists() and not (path.is_dir() or is_dicom_file(path)):
        way_out = "Give the series, or leave out --dicom to get .nii.gz alone."
        raise volume_error("no-dicom", path, "no DICOM series", "a folder of DICOM slices to refer to", way_out)


def target_and_stack(path: str | Path, series_dir: str | Path) -> tuple[Path, DicomStack]:
    """The path, and the series that a file there will refer to. Raises ConfigError where it would become part of it."""
    path, series_dir = Path(path), Path(series_dir)
    if path.resolve().parent == series_dir.resolve():
        raise ConfigError(f"{path}: would become a file of the series itself. Choose another folder.")
    return path, read_dicom_stack(series_dir)


def fitted(path: Path, volume: Volume, series_dir: str | Path, header: Header) -> Volume:
    """The volume in the order of the series' axes. Raises DataError, naming path, where it lies on another grid."""
    if volume.array.ndim != 3:
        found = f"voxels of shape {volume.shape}"
        raise volume_error(f"{volume.array.ndim}-d", path, found, "3-D (X, Y, Z)", "Give one volume.")
    faults = affine_faults(volume.affine)
    if not faults:
        volume = reordered(volume, header)
        faults = list(grid_mismatches(header, volume))
    if faults:
        raise DataError(f"{path}: its voxels do not fit the series {series_dir}: {faults[0].message}")
    return volume


def write_derived(
    path: Path, stack: DicomStack, series_dir: str | Path, make: Callable[[list[pydicom.Dataset]], pydicom.Dataset]
) -> None:
    """Writes what `make` makes of the headers of the slices, with the patient's data of the series added.

    Raises DataError, naming the series, where it lacks what is referred to or highdicom refuses it.
    """
    with _refused_by_name(series_dir):
        sources, personal = _source_images(stack)
        dataset = make(sources)
        dataset.update(personal)
        _stamp(dataset, sources[0])
        dataset.SpecificCharacterSet = "ISO_IR 192"  # UTF-8: the names of structures are anyone's
        write_atomically(path, dataset.save_as)


def new_series(number: int, description: str) -> dict[str, Any]:
    """Arguments by which highdicom names a new series of one file, and medssl as its maker."""
    return {
        "series_instance_uid": generate_uid(),
        "series_number": number,
        "series_description": description,
        "sop_instance_uid": generate_uid(),
        "instance_number": 1,
        "manufacturer": "medssl",
        "manufacturer_model_name": "medssl",
        "software_versions": __version__,
        "device_serial_number": "none",
    }


def _stamp(dataset: pydicom.Dataset, source: pydicom.Dataset) -> None:
    """Say when the file was made, with the time zone: that of the series where it names one, else this machine's.

    highdicom writes this machine's time without a zone, which cannot be compared with files of other programs. The
    zone holds for the times of the study as well, so that it must not be any.
    """
    now = datetime.now(UTC).astimezone(_zone_of(source))
    dataset.TimezoneOffsetFromUTC = now.strftime("%z")[:5]
    for name in ("Content", "InstanceCreation"):
        if f"{name}Date" in dataset:
            setattr(dataset, f"{name}Date", now.strftime("%Y%m%d"))
            setattr(dataset, f"{name}Time", now.strftime("%H%M%S.%f"))


def _zone_of(source: pydicom.Dataset) -> tzinfo | None:
    """The time zone that a slice names; None, which is this machine's, if it names none."""
    try:
        return datetime.strptime(str(source.get("TimezoneOffsetFromUTC")), "%z").tzinfo
    except ValueError:
        return None


@contextmanager
def _refused_by_name(series_dir: str | Path) -> Iterator[None]:
    """No value of an element reaches a log line or an error: what pydicom or highdicom raises becomes a DataError."""
    try:
        with disable_value_validation():  # which would quote odd values in the log
            yield
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        # from None: the text may quote the values of elements
        found = f"highdicom refuses the series ({type(error).__name__})"
        raise volume_error("bad-series", series_dir, found, "valid DICOM", _EXPORT) from None


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
                way_out = f"{_EXPORT} Without it only .nii.gz can be written."
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
