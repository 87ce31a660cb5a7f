"""Keys that mean nothing are refused: unknown ones, sections of a configuration given as values, lost parts."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from medssl.bundle.arguments import check_arguments
from medssl.bundle.command import Command
from medssl.core.errors import ConfigError
from medssl.core.key_facts import key_facts
from medssl.core.options import nearest_name, unknown_name

OF_MONAI = {"imports", "initialize", "run", "finalize"}  # keys that any configuration may have
SHOWN = 8
EXPLAIN = "'medssl explain KEY' says what a key means."


def check_command(command: Command, shipped: Sequence[Mapping[str, Any]], options: Iterable[str], bundle: str) -> None:
    """ConfigError if the command has a key that means nothing, with the nearest key that means something.

    shipped: the bundle's own files that the command takes. options: what users may give besides what those list.
    A key that another value refers to (`@my_key`) is the user's own. bundle: the name of the bundle.
    """
    listed = {top_of(name): value for config in shipped for name, value in config.items()}
    sections = {name: value for name, value in listed.items() if is_section(name, value)}
    keys = (set(listed) | set(options)) - set(sections)
    known = keys | set(sections) | OF_MONAI | {command.run_id}
    references = json.dumps(command.config, default=str)
    for name in [*command.config, *command.keys]:
        top = top_of(name)
        if top not in known and not re.search(rf"@{re.escape(top)}(?!\w)", references):
            raise ConfigError(_unknown_key(top, keys, bundle))
    for name, section in sections.items():
        _refuse_plain(name, command.config.get(name, section), section, keys)
    for name in command.keys:
        _refuse_lost(name, shipped)
    check_arguments(command)


def is_section(name: str, value: Any) -> bool:
    """Whether a key of a configuration is wiring: a part with parts, or steps to run; users do not give it a value."""
    is_steps = isinstance(value, list) and bool(value) and all(str(step).startswith(("$", "%")) for step in value)
    is_other_steps = isinstance(value, str) and value.startswith("%")
    return name in OF_MONAI or isinstance(value, dict) or is_steps or is_other_steps


def is_expression(value: Any) -> bool:
    """Whether MONAI works a value out."""
    return isinstance(value, str) and value.startswith(("$", "@", "%"))


def top_of(name: str) -> str:
    """`train` of `train#trainer#max_epochs`."""
    return name.replace("::", "#").lstrip("+").split("#")[0]


def _unknown_key(name: str, keys: Iterable[str], bundle: str) -> str:
    """The text of an error: who knows the key, or which key is nearest."""
    facts = [fact for fact in key_facts() if fact.name == name]
    needs = sorted({fact.needs for fact in facts if fact.bundle == bundle and fact.needs})
    others = sorted({fact.bundle for fact in facts} - {bundle})
    if needs:
        return f"key '{name}' is unknown here. It needs {' or '.join(needs)}. {EXPLAIN}"
    if others:
        return (
            f"key '{name}' is unknown to {bundle}. {name} is a key of {', '.join(others)}, not of {bundle}. {EXPLAIN}"
        )
    return f"{unknown_name(name, keys, 'key', shown=SHOWN)} {EXPLAIN}"


def _refuse_plain(name: str, value: Any, section: Any, keys: Iterable[str]) -> None:
    """ConfigError for a section of the configuration that was given a plain value, such as `--validate 3`."""
    expected = dict if isinstance(section, dict) else list
    if isinstance(value, expected) or is_expression(value):
        return
    nearest = nearest_name(name, keys)
    hint = f" Did you mean '{nearest}'?" if nearest else ""
    part = next((key for key in section if key != "_target_"), "_target_") if isinstance(section, dict) else ""
    way_out = f" Its parts are keys, e.g. {name}#{part}." if part else " Leave it out."
    raise ConfigError(
        f"key '{name}': {value!r} given, but it is a section of the configuration and takes no value.{hint}{way_out}"
    )


def _refuse_lost(name: str, shipped: Sequence[Mapping[str, Any]]) -> None:
    """ConfigError if a nested key such as `train#optimizer#lr` would be added where nothing reads it."""
    first, *deeper = name.replace("::", "#").lstrip("+").split("#")
    if not deeper:
        return
    sections = [config[first] for config in shipped if isinstance(config.get(first), dict)]
    if not sections:
        raise ConfigError(f"key '{name}': '{first}' has no parts. Give '{first}' itself, or another key.")
    for part in deeper:
        if any("_target_" in section for section in sections):
            return  # an argument: `check_arguments` looks at it
        known = {key for section in sections for key in section}
        if part not in known:
            raise ConfigError(unknown_name(part, known, f"{name}: part"))
        sections = [section[part] for section in sections if isinstance(section.get(part), dict)]


def shipped_configs(bundle_root: Path, command: Command) -> list[dict[str, Any]]:
    """The bundle's train.json, and those of its overlays that the command takes."""
    folder = bundle_root / "configs"
    files = {folder / "train.json", *(folder / Path(file).name for file in command.config_files)}
    return [json.loads(file.read_text()) for file in sorted(files) if file.is_file()]
