"""Which DICOM series of a folder are served, under which ids: the only file that says where a study comes from."""

import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from medssl.core.errors import DataError
from medssl.core.files import write_text_atomically
from medssl.data.dicom_folders import series_below

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ServedSeries:
    """The files of a series, and a stamp that changes when one of them does."""

    files: tuple[Path, ...]
    stamp: str


def map_series(folder: Path, modality: str | None, workspace: Path) -> dict[str, ServedSeries]:
    """Id -> series below `folder`; DataError if there is none of the modality.

    Ids are made from the UIDs of the series, so that they tell nothing of a patient and stay when a folder is renamed.
    """
    tree = series_below(folder, modality, leave_out=workspace)
    if tree.unreadable:
        logger.warning("%d DICOM files cannot be parsed and are left out", len(tree.unreadable))
    if tree.other:
        logger.info("%d series are not of modality %s and are left out", tree.other, modality)
    if not tree.series:
        kind = f"of modality {modality} " if modality else ""
        raise DataError(
            f"{folder}: no DICOM image series {kind}found, {tree.other} of another modality. Check the folder, or give "
            "the modality with --search-filter."
        )
    return {series_id(series.uid): ServedSeries(series.files, _stamp(series.files)) for series in tree.series}


def series_id(uid: str) -> str:
    """The id of a series that its UID cannot be read from."""
    return f"series-{hashlib.sha256(uid.encode()).hexdigest()[:12]}"


def write_map(file: Path, served: dict[str, ServedSeries]) -> None:
    """Store the map, for the server and the processes it starts."""
    content = {
        name: {"stamp": series.stamp, "files": [str(path) for path in series.files]} for name, series in served.items()
    }
    write_text_atomically(file, json.dumps(content, indent=1))


def read_map(file: Path) -> dict[str, ServedSeries]:
    """What write_map has stored."""
    content = json.loads(file.read_text())
    return {name: ServedSeries(tuple(map(Path, entry["files"])), entry["stamp"]) for name, entry in content.items()}


def _stamp(files: Sequence[Path]) -> str:
    facts = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
