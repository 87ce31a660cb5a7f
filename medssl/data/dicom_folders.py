"""The image series below a folder, however their files are spread over it and its sub-folders."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pydicom
from pydicom.errors import InvalidDicomError
from pydicom.uid import MediaStorageDirectoryStorage, ParametricMapStorage, SegmentationStorage

from medssl.data.dicom import Series, is_dicom_file

_TAGS = ["SeriesInstanceUID", "SOPClassUID", "Modality", "Rows"]
_RESULTS = (SegmentationStorage, ParametricMapStorage)  # about a scan, not scans


@dataclass(frozen=True)
class SeriesTree:
    """The series below a folder, by UID. unreadable: DICOM files that cannot be parsed.

    other: how many series have another modality than the one asked for.
    """

    series: tuple[Series, ...]
    other: int
    unreadable: tuple[Path, ...]


def series_below(root: str | Path, modality: str | None = None, leave_out: Path | None = None) -> SeriesTree:
    """The image series below `root`, of one modality or of any; hidden folders and `leave_out` are not looked into.

    A series may lie in several folders, and several series in one. Files that name no series belong together if they
    share a folder; their series has that folder, relative to `root`, as its UID.
    """
    root = Path(root)
    files: dict[str, list[Path]] = {}
    modalities: dict[str, str] = {}
    unreadable = []
    for file in dicom_files(root, leave_out):
        header = _header(file)
        if header is None:
            unreadable.append(file)
            continue
        if "Rows" not in header or header.get("SOPClassUID") in _RESULTS:
            continue
        uid = str(header.get("SeriesInstanceUID") or file.parent.relative_to(root))
        files.setdefault(uid, []).append(file)
        modalities.setdefault(uid, str(header.get("Modality", "")))
    wanted = [uid for uid in sorted(files) if modality in (None, modalities[uid])]
    series = tuple(Series(uid, tuple(files[uid])) for uid in wanted)
    return SeriesTree(series, len(files) - len(wanted), tuple(unreadable))


def dicom_files(root: Path, leave_out: Path | None = None) -> Iterator[Path]:
    """The DICOM files below `root` in the order of their paths; hidden folders and `leave_out` are not looked into."""
    for folder, inside, names in os.walk(root):
        here = Path(folder)
        inside[:] = sorted(name for name in inside if not name.startswith(".") and here / name != leave_out)
        yield from (file for name in sorted(names) if is_dicom_file(file := here / name))


def _header(file: Path) -> pydicom.Dataset | None:
    """What says which series the file is of; None where the file does not even say what it is."""
    try:
        header = pydicom.dcmread(file, stop_before_pixels=True, specific_tags=list(_TAGS))
    except (InvalidDicomError, EOFError, ValueError, NotImplementedError):
        return None
    is_index = header.file_meta.get("MediaStorageSOPClassUID") == MediaStorageDirectoryStorage
    return header if is_index or "SOPClassUID" in header or "Rows" in header else None
