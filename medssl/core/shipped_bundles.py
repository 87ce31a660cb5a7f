"""The bundles that come with medssl: inside an installed package, or beside it in a checkout."""

import json
import shutil
from pathlib import Path

from rich import box
from rich.markup import escape
from rich.table import Table

from medssl.core.errors import ConfigError
from medssl.core.options import unknown_name

_PACKAGE = Path(__file__).resolve().parents[1]


def shipped_bundles() -> dict[str, Path]:
    """Name -> folder of every bundle that comes with medssl, sorted by name."""
    installed = _PACKAGE / "bundles"
    folder = installed if installed.is_dir() else _PACKAGE.parent / "bundles"
    trainings = sorted(folder.glob("*/configs/train.json"))
    return {training.parents[1].name: training.parents[1] for training in trainings}


def bundle_path(name: str) -> Path:
    """The folder of the shipped bundle `name`; ConfigError names the nearest there is."""
    bundles = shipped_bundles()
    if name not in bundles:
        raise ConfigError(f"{unknown_name(name, bundles, 'bundle')} 'medssl bundles' lists all.")
    return bundles[name]


def copy_bundle(name: str, target: str | Path) -> Path:
    """Copy all files of the shipped bundle `name` into `target`, a folder that is new or empty; returns `target`.

    Raises ConfigError for a name there is not, and for a target that holds something or cannot be written.
    """
    source, target = bundle_path(name), Path(target)
    if target.exists() and not target.is_dir():
        raise ConfigError(f"{target}: is a file, expected a new or empty folder. Choose another one.")
    if target.is_dir() and any(target.iterdir()):
        raise ConfigError(f"{target}: holds files already, expected a new or empty folder. Choose another one.")
    try:
        shutil.copytree(source, target, dirs_exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{target}: cannot be written ({error}). Choose another folder.") from error
    return target


def bundles_table() -> Table:
    """Rich table of the shipped bundles: name, what it trains with a sentence about how, and where it lies."""
    table = Table("bundle", "what it trains, where it lies", box=box.SIMPLE, leading=1)
    for name, folder in shipped_bundles().items():
        facts = _metadata(folder)
        table.add_row(f"[bold]{escape(name)}[/]", escape(f"{facts['task']}\n{facts['description']}\n{folder}"))
    return table


def _metadata(bundle: Path) -> dict[str, str]:
    """`task` and `description` of configs/metadata.json; ConfigError if they are not there."""
    file = bundle / "configs" / "metadata.json"
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return {key: str(content[key]) for key in ("task", "description")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{file}: has no task and description that can be read ({type(error).__name__}: {error}). "
            "Install medssl again."
        ) from error
