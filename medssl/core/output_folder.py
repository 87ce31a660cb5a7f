"""The folder that a training is going to write to, checked before anything takes time."""

import os
from pathlib import Path

from medssl.core.errors import ConfigError

_ANOTHER = "Choose another --output_dir."


def require_output_folder(path: Path, resume: bool) -> None:
    """ConfigError unless a run can be written to `path`, or goes on there; nothing is written."""
    blocking = next((folder for folder in (path, *path.parents) if folder.exists() and not folder.is_dir()), None)
    if blocking is not None:
        raise ConfigError(f"{blocking}: is a file, expected the folder of the run. {_ANOTHER}")
    nearest = _nearest_folder(path)
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise ConfigError(f"{nearest}: cannot be written, expected a folder for the run. {_ANOTHER}")
    if (path / "run.json").is_file() and not resume:
        raise ConfigError(
            f"{path}: holds a run already. Continue it with --resume true, or choose another --output_dir."
        )


def _nearest_folder(path: Path) -> Path:
    """The folder itself, or the nearest one above it that is there."""
    whole = Path(os.path.abspath(path))  # noqa: PTH100  (resolve would follow links that are not there yet)
    return next(folder for folder in (whole, *whole.parents) if folder.is_dir())
