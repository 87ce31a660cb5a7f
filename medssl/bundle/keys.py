"""The keys of a bundle: those that its configuration lists, and the options of the parts that it is made of.

A part lists in JSON what the bundle chooses. What it does not list is an option of the part with a default in Python;
users give it like any other key, and `given_options` finds it in the command. So common choices are said once.
"""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from medssl.bundle.command import Command, current_command
from medssl.core.errors import ConfigError
from medssl.core.options import make_options, names_of, unknown_name

Options = TypeVar("Options")
# keys that MONAI itself knows in any configuration
_OF_MONAI = {"imports", "initialize", "run", "finalize"}


def given_options(kind: type[Options], listed: Mapping[str, Any]) -> Options:
    """The options of a part: `listed` by the configuration, else as the user's command has them, else their defaults.

    Raises ConfigError for a value that an option does not take.
    """
    command = current_command()
    unlisted = {} if command is None else _plain_values(command, set(names_of(kind)) - set(listed))
    return make_options(kind, {**unlisted, **listed})


def given_by_name(names: Iterable[str]) -> dict[str, Any]:
    """Of these names those that the user's command has, with their values."""
    command = current_command()
    return {} if command is None else _plain_values(command, set(names))


def check_keys(bundle_root: str | Path, known: Iterable[str]) -> None:
    """ConfigError if the command has a key that means nothing, with the nearest key that means something.

    known: options besides what the bundle's configurations of a training list. A key that another value refers to
    (`@my_key`) is the user's own.
    """
    command = current_command()
    if command is None:
        print(
            "Started from Python: keys that train.json does not list have no effect. "
            "medssl.bundle.run_bundle(run_id, config_files, **keys) takes them all.",
            flush=True,
        )
        return
    shipped = _configs_of_training(Path(bundle_root) / "configs", command)
    listed = {name for config in shipped for name in config}
    names = {_top(name) for name in listed} | set(known) | _OF_MONAI
    references = json.dumps(command.config)
    for name in [*command.config, *command.keys]:
        top = _top(name)
        if top not in names and not re.search(rf"@{re.escape(top)}(?!\w)", references):
            raise ConfigError(unknown_name(top, names, "key"))
    for name in command.keys:
        _refuse_lost(name, shipped)


def _configs_of_training(folder: Path, command: Command) -> list[dict[str, Any]]:
    """What is run, and the overlays for it: not the configurations that predict or evaluate, nor the metadata."""
    first = Path(command.config_files[0]).name if command.config_files else "train.json"
    configs = {file.name: json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))}
    return [
        config
        for name, config in configs.items()
        if name in ("train.json", first) or ("run" not in config and name != "metadata.json")
    ]


def _refuse_lost(name: str, shipped: list[dict[str, Any]]) -> None:
    """ConfigError if a nested key such as `train#optimizer#lr` would be added where nothing reads it."""
    first, *deeper = name.replace("::", "#").lstrip("+").split("#")
    if not deeper:
        return
    sections = [config[first] for config in shipped if isinstance(config.get(first), dict)]
    if not sections:
        raise ConfigError(f"key '{name}': '{first}' has no parts. Give '{first}' itself, or another key.")
    for part in deeper:
        if any("_target_" in section for section in sections):
            return  # an argument: what is built with it refuses what it does not know
        known = {key for section in sections for key in section}
        if part not in known:
            raise ConfigError(f"{unknown_name(part, known, f'{name}: part')}")
        sections = [section[part] for section in sections if isinstance(section.get(part), dict)]


def _top(name: str) -> str:
    return name.replace("::", "#").lstrip("+").split("#")[0]


def _plain_values(command: Command, names: set[str]) -> dict[str, Any]:
    """The values of `names` in the command; ConfigError for an expression, which only listed keys may have."""
    values = {name: value for name, value in command.config.items() if name in names}
    for name, value in values.items():
        if isinstance(value, str) and value.startswith(("$", "@", "%")):
            raise ConfigError(f"{name} '{value}': an expression. This key takes a plain value.")
    return values
