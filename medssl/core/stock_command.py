"""MONAI's own command that runs a bundle: what `medssl train`, sweeps and the docs are short forms of."""

import json
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from medssl.core.errors import ConfigError
from medssl.core.options import unknown_name
from medssl.core.shipped_bundles import bundle_path, shipped_bundles


def find_bundle(text: str | Path) -> Path:
    """The folder of a bundle that can be trained: `text` is a folder, or the name of a shipped bundle."""
    folder = Path(text)
    if (folder / "configs" / "train.json").is_file():
        return folder
    if str(text) in shipped_bundles():
        return bundle_path(str(text))
    if folder.is_dir():
        raise ConfigError(f"{folder}: has no configs/train.json. Expected the folder of a bundle to train.")
    known = unknown_name(str(text), shipped_bundles(), "bundle")
    raise ConfigError(f"{known} Expected such a name, or the folder of a bundle. 'medssl bundles' lists all.")


def bundle_name(folder: Path) -> str:
    """The name that a bundle has in its metadata.json, so that a copy is known by it, too; else its folder's."""
    file = folder / "configs" / "metadata.json"
    try:
        return str(json.loads(file.read_text(encoding="utf-8"))["name"])
    except (OSError, ValueError, KeyError):
        return folder.name


def config_files(bundle: Path, config: str, overlays: Sequence[str] = ()) -> list[Path]:
    """The configuration `config` of a bundle with overlays: names of files beside it, or paths of other JSON files."""
    folder = bundle / "configs"
    return [folder / f"{config}.json", *(_overlay(folder, overlay) for overlay in overlays)]


def evaluate_config(bundle: Path, facts: Mapping[str, Any]) -> str:
    """The name of the configuration that evaluates the run of these facts: a bundle of two tasks has two."""
    task = facts.get("task", "scans")  # a run on scans names none
    own = f"{task}_evaluate"
    return own if (bundle / "configs" / f"{own}.json").is_file() else "evaluate"


def _overlay(folder: Path, overlay: str) -> Path:
    beside = folder / f"{overlay}.json"
    if beside.is_file():
        return beside
    if Path(overlay).is_file():
        return Path(overlay)
    bases = {"train", "evaluate", "inference", "metadata"}
    known = {file.stem for file in folder.glob("*.json")} - bases
    raise ConfigError(f"{folder.parent}: {unknown_name(overlay, known, 'overlay')}")


def stock_command(run_id: str, files: Sequence[Path], keys: Mapping[str, str]) -> list[str]:
    """The arguments of Python that run the configuration, without the interpreter itself."""
    paths = str(files[0]) if len(files) == 1 else str([str(file) for file in files])
    pairs = [part for key, value in keys.items() for part in (f"--{key}", value)]
    return ["-m", "monai.bundle", "run", run_id, "--config_file", paths, *pairs]


def as_typed(arguments: Sequence[str]) -> str:
    """The command as a user would type it."""
    return " ".join(["python", *map(_quoted, arguments)])


def _quoted(text: str) -> str:
    """The text for a shell; lists of files, which have quotes themselves, get the other ones."""
    is_plain_inside = not re.search(r'["$`\\!]', text)
    return f'"{text}"' if "'" in text and is_plain_inside else shlex.quote(text)


def as_run(arguments: Sequence[str]) -> list[str]:
    """The command with the interpreter that runs this process."""
    return [sys.executable, *arguments]
