"""The keys of a bundle: those that its train.json lists, and the options of the parts that it is made of.

A train.json lists what its bundle chooses. All else is an option of a part, with a default and a meaning in Python;
users give it like any other key, and `given_options` finds it in the command. So what bundles share is said once.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import medssl
from medssl.bundle.command import Command, current_command
from medssl.bundle.key_check import check_command, is_expression, shipped_configs, top_of
from medssl.core.distributed import require_device
from medssl.core.errors import ConfigError
from medssl.core.flags import flag
from medssl.core.options import make_options, names_of, unknown_name
from medssl.core.progress import say
from medssl.core.seeding import be_deterministic
from medssl.engine.explaining import explain_errors
from medssl.inference.export import require_bundle

Options = TypeVar("Options")
_AROUND_A_RUN = {"imports", "initialize", "finalize"}


def begin(bundle_root: str | Path, seed: int, parts: Sequence[type]) -> None:
    """Before anything is built: errors are explained, keys and their values are checked, everything is seeded.

    parts: the dataclasses of options that the bundle's parts have.
    """
    explain_errors()
    command = current_command()
    if command is not None:
        explain_errors(flag(command.config.get("debug", False), "debug"))
        data = command.config.get("dataset_name", "own data")
        say(f"medssl {medssl.__version__}: {command.run_id} with the bundle {Path(bundle_root).name} on {data}")
        require_run_id(command)
    require_bundle(bundle_root)
    check_keys(bundle_root, names_of(*parts))
    check_values(parts)
    be_deterministic(seed)


def require_run_id(command: Command) -> None:
    """ConfigError unless the configuration has what is to be run: MONAI would look for it last."""
    name = top_of(command.run_id)
    if name in command.config:
        return
    known = [key for key, value in command.config.items() if _is_run(key, value)]
    raise ConfigError(f"{unknown_name(name, known, 'run id')} There are: {', '.join(known)}.")


def check_values(parts: Sequence[type]) -> None:
    """ConfigError for a value that an option does not take; expressions are checked when they have become values."""
    command = current_command()
    config = {} if command is None else command.config
    for part in parts:
        plain = {name: config[name] for name in names_of(part) if name in config and not is_expression(config[name])}
        make_options(part, plain)
    device = config.get("device")
    if isinstance(device, str) and not is_expression(device):
        require_device(device)


def given_options(kind: type[Options], listed: Mapping[str, Any]) -> Options:
    """The options of a part: `listed` by the configuration, else as the user's command has them, else their defaults.

    Raises ConfigError for a value that an option does not take.
    """
    return make_options(kind, {**given_by_name(set(names_of(kind)) - set(listed)), **listed})


def given_by_name(names: Iterable[str]) -> dict[str, Any]:
    """Of these names those that the user's command has, with their values; ConfigError for an expression."""
    command = current_command()
    config = {} if command is None else command.config
    values = {name: config[name] for name in names if name in config}
    for name, value in values.items():
        if is_expression(value):
            raise ConfigError(f"{name} '{value}': an expression. This key takes a plain value.")
    return values


def check_keys(bundle_root: str | Path, options: Iterable[str]) -> None:
    """ConfigError if the command has a key that means nothing, with the nearest key that means something.

    options: what users may give besides what train.json, and overlays of the bundle, list. ConfigError, too, in a
    program that does not say what it gave: keys that train.json does not list would be lost.
    """
    command = current_command()
    if command is None:
        raise ConfigError(
            f"{bundle_root}: MONAI was started by a Python program. Keys and overlays beyond train.json would be lost. "
            "Start it by medssl.bundle.run_bundle('training', config_files, **keys), which keeps them all."
        )
    check_command(command, shipped_configs(Path(bundle_root), command), options, Path(bundle_root).name)


def _is_run(name: str, value: Any) -> bool:
    """Whether a key names steps that MONAI can run, such as `training`: a list of expressions."""
    is_list = isinstance(value, list) and bool(value)
    return name not in _AROUND_A_RUN and is_list and all(str(step).startswith("$") for step in value)
