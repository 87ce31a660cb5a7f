"""How the served model was trained, so that it can be trained on: its bundle's train.json and the keys of its run."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medssl.bundle.provenance import flatten
from medssl.bundle.scans import own_keys
from medssl.core.errors import ConfigError, MedsslError
from medssl.core.run_folder import read_facts
from medssl.core.shipped_bundles import shipped_bundles
from medssl.security.gate import require_harmless, require_harmless_choices
from medssl.security.opening import read_configs


@dataclass(frozen=True)
class TrainingRecipe:
    """`source`: the bundle with configs/train.json. `keys`: what the model's run changed of it. `run`: its folder.

    `overlay_name`: of the configuration beside train.json that the run cannot do without (`scans` of np_semiseg).
    """

    source: Path
    keys: dict[str, Any]
    run: Path | None
    overlay_name: str = ""

    @property
    def configs(self) -> list[Path]:
        """The bundle's files that `keys` come on top of."""
        return _configs(self.source, self.overlay_name)

    def overlay(self, data_facts: dict[str, Any], weights: Path, **own: Any) -> dict[str, Any]:
        """Keys over train.json: those of the run, the scans' preparation of `data_facts`, `weights` to begin with."""
        keys = ("window", "slice_size", "region_size", "patch_size", "region", "depth")
        prepared = {key: data_facts.get(key) for key in keys}
        return {**self.keys, **prepared, "bundle_root": str(self.source), "start_from": str(weights), **own}


def find_recipe(bundle: Path, trust: bool = False) -> TrainingRecipe:
    """The recipe of a trained bundle, by the run it lies in; ConfigError if it cannot be found any more.

    ConfigError, too, if the bundle that the run was trained by, or a choice of the run, could do harm, unless the user
    said `trust`.
    """
    run = bundle.parent if (bundle.parent / "run.json").is_file() else None
    if run is None:
        if (bundle / "configs" / "train.json").is_file():
            require_harmless(bundle, trust)
            return TrainingRecipe(bundle, {}, None)
        raise ConfigError(f"{bundle}: not in the folder of a run, so that nothing says how to train it on.")
    try:
        facts = read_facts(run)
        config, name = dict(facts["config"]), str(facts["bundle"])
    except (MedsslError, ValueError, KeyError) as error:
        raise ConfigError(f"{run / 'run.json'}: cannot be read ({error}). The model cannot be trained on.") from error
    overlay = Path(config.get("overlay", "")).name
    for source in _sources(name, str(config.get("bundle_root", "")), str(facts.get("bundle_root", ""))):
        if all(file.is_file() for file in _configs(source, overlay)):
            require_harmless(source, trust)
            changes = _changes(_configs(source, overlay), config)
            require_harmless_choices(run / "run.json", changes, trust)
            return TrainingRecipe(source.resolve(), changes, run, overlay)
    raise ConfigError(f"{run}: was trained by the bundle '{name}', which medssl does not have ('medssl bundles').")


def _sources(name: str, *recorded: str) -> list[Path]:
    """Where the bundle of a run may lie: where the run says, or among those that come with medssl."""
    shipped = shipped_bundles()
    return [Path(folder) for folder in recorded if folder] + ([shipped[name]] if name in shipped else [])


def _configs(source: Path, overlay: str) -> list[Path]:
    return [source / "configs" / f"{name}.json" for name in ("train", overlay) if name]


def _changes(written_in: Sequence[Path], config: dict[str, str]) -> dict[str, Any]:
    """The choices of a run's configuration that are other than in the bundle's files.

    A choice is a plain value: of a key of its own, or of an argument that the files have; or all of a section that
    builds another class than theirs, such as another network. What a run's configuration wires together, perhaps of a
    version before this one, is the bundle's business.
    """
    written = flatten(read_configs(written_in))
    sections = _replaced_sections(written, config)
    own = own_keys()
    changes: dict[str, Any] = {section: _section(config, section) for section in sections}
    for key, text in config.items():
        section, _, argument = key.rpartition("::")
        is_wiring = _is_expression(text) or argument == "_target_"
        is_lost = section and key not in written
        is_replaced = key.startswith(tuple(f"{replaced}::" for replaced in sections))
        if key.split("::")[0] in own or is_wiring or is_lost or is_replaced:
            continue
        if written.get(key) != text:
            changes[key] = _value(text)
    return changes


def _replaced_sections(written: dict[str, str], config: dict[str, str]) -> list[str]:
    """The sections that build another class in `config`; those that a bundle builds by `bundle` packages are wiring."""
    targets = {key: text for key, text in written.items() if key.endswith("::_target_") and ".bundle." not in text}
    return [key.removesuffix("::_target_") for key, text in targets.items() if config.get(key, text) != text]


def _section(config: dict[str, str], prefix: str) -> Any:
    """The values below `prefix` in a flat configuration, nested again."""
    section: dict[str, Any] = {}
    for key, text in config.items():
        if key.startswith(f"{prefix}::"):
            name, *deeper = key.removeprefix(f"{prefix}::").split("::")
            section[name] = _section(config, f"{prefix}::{name}") if deeper else _value(text)
    return list(section.values()) if all(name.isdigit() for name in section) else section


def _is_expression(text: str) -> bool:
    """Whether a value, or one in a list of them, refers to others or computes."""
    value = _value(text)
    values = value if isinstance(value, list) else [value]
    return any(isinstance(item, str) and item.startswith(("$", "@", "%")) for item in values)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
