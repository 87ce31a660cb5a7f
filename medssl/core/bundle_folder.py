"""Where a bundle lies: in the folder given, or in `bundle/` of a run."""

import difflib
from pathlib import Path

from medssl.core.errors import ConfigError

_WAY_OUT = "Give a bundle, or the folder of a finished run."


def bundle_folder(path: str | Path) -> Path:
    """The bundle at `path`, which is a bundle or the folder of a run with one; it need not be there."""
    folder = Path(path)
    return folder / "bundle" if (folder / "bundle" / "configs").is_dir() else folder


def bundle_root(path: str | Path) -> Path:
    """The bundle at `path`, a bundle or a run with one; ConfigError if there is none."""
    given = Path(path)
    if not given.exists():
        raise ConfigError(f"{given}: no such folder.{_nearest_sibling(given)} {_WAY_OUT}")
    if not given.is_dir():
        raise ConfigError(f"{given}: a file, expected a folder. {_WAY_OUT}")
    root = bundle_folder(given)
    if not (root / "configs" / "inference.json").is_file():
        raise ConfigError(f"{root}: no configs/inference.json. {_WAY_OUT}")
    return root


def _nearest_sibling(missing: Path) -> str:
    """` Did you mean 'runs/gbdl'?` if a folder beside the missing one has nearly its name; else nothing."""
    if not missing.parent.is_dir():
        return ""
    folders = [entry.name for entry in missing.parent.iterdir() if entry.is_dir() and not entry.name.startswith(".")]
    nearest = difflib.get_close_matches(missing.name, sorted(folders), n=1)
    return f" Did you mean '{missing.parent / nearest[0]}'?" if nearest else ""
