"""Paths that a run's split.json holds: found again from any folder, and after the run or the whole project moved."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

WRITTEN = "written"  # key of a split.json: where it was written
_KEY = "::"  # between an HDF5 file and the dataset in it


def places_of_writing(run_dir: str | Path) -> dict[str, str]:
    """What must be stored beside paths, so that `located` finds them: the working directory and the run's folder."""
    return {"working_dir": str(Path.cwd()), "run_dir": str(Path(run_dir).resolve())}


def tried_places(path: str, run_dir: str | Path, written: Mapping[str, Any] | None = None) -> list[str]:
    """Where a stored path may be, the likeliest first.

    Where it was when the run was trained; at the same way from the run's folder; below the working directory; below the
    run's folder or a folder above that. Files of before hold no `written`: the last two are left.
    """
    written = written or {}
    now = Path(run_dir).resolve()
    places = [path] if Path(path).is_absolute() or written.get("working_dir") in (None, str(Path.cwd())) else []
    if written:
        trained_on = Path(written["working_dir"]) / path
        places += [str(trained_on), os.path.normpath(now / os.path.relpath(trained_on, written["run_dir"]))]
    places += [path, *(str(folder / path) for folder in (now, *now.parents))]
    return list(dict.fromkeys(places))


def located(path: str, run_dir: str | Path, written: Mapping[str, Any] | None = None) -> str:
    """The first of `tried_places` that exists, `path` itself where none does; an HDF5 address keeps its key."""
    return next((place for place in tried_places(path, run_dir, written) if is_there(place)), path)


def is_there(address: str) -> bool:
    """Whether the file or folder of an address exists."""
    file, _, _ = address.partition(_KEY)
    return Path(file).exists()
