"""How the served model was trained, so that it can be trained on: its bundle's train.json and the keys of its run."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monai.bundle import ConfigParser

import medssl
from medssl.core.errors import ConfigError, MedsslError
from medssl.core.run_folder import read_facts
from medssl.engine.provenance import flatten

# of a training after review these follow from the studies, or from where it is run
_OWN_KEYS = {
    *("bundle_root", "imports", "dataset_name", "dataset_dir", "target", "window", "download", "lists_dir"),
    *("labelled", "unlabelled", "validation", "test", "split_seed", "slice_size", "region_size", "patch_size"),
    *("paper_crop", "cache_dir", "runs_dir", "output_dir", "resume", "first_stage_from", "mlflow", "tracking_uri"),
    *("device", "network", "initialize", "run", "training", "finalize"),
}


@dataclass(frozen=True)
class Recipe:
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
        network = json.loads((self.source / "configs" / "train.json").read_text())["network"]
        started = network.replace("@network_def", "warm_start.warm_start(@network_def, @start_from)")
        prepared = {key: data_facts.get(key) for key in ("window", "slice_size", "region_size", "patch_size")}
        return {
            **self.keys,
            **prepared,
            "+imports": ["$import medssl.label_app.warm_start as warm_start"],
            "bundle_root": str(self.source),
            "start_from": str(weights),
            "network": started,
            **own,
        }


def find_recipe(bundle: Path) -> Recipe:
    """The recipe of a trained bundle, by the run it lies in; ConfigError if it cannot be found any more."""
    run = bundle.parent if (bundle.parent / "run.json").is_file() else None
    if run is None:
        if (bundle / "configs" / "train.json").is_file():
            return Recipe(bundle, {}, None)
        raise ConfigError(f"{bundle}: not in the folder of a run, so that nothing says how to train it on.")
    try:
        facts = read_facts(run)
        config, name = dict(facts["config"]), str(facts["bundle"])
    except (MedsslError, ValueError, KeyError) as error:
        raise ConfigError(f"{run / 'run.json'}: cannot be read ({error}). The model cannot be trained on.") from error
    checkout = Path(medssl.__file__).parents[1]
    named, overlay = Path(str(config.get("bundle_root", ""))), Path(config.get("overlay", "")).name
    for source in (named, checkout / named, checkout / "bundles" / name):
        if all(file.is_file() for file in _configs(source, overlay)):
            return Recipe(source.resolve(), _changes(_configs(source, overlay), config), run, overlay)
    raise ConfigError(f"{run}: was trained by the bundle '{name}', which is not in {checkout / 'bundles'}.")


def _configs(source: Path, overlay: str) -> list[Path]:
    return [source / "configs" / f"{name}.json" for name in ("train", overlay) if name]


def _changes(written_in: Sequence[Path], config: dict[str, str]) -> dict[str, Any]:
    """What the run's configuration has other than the bundle's files."""
    written = flatten(ConfigParser.load_config_files([str(file) for file in written_in]))
    # MONAI has written out the short form of references
    changed = {key: value for key, value in config.items() if written.get(key, "").replace("#", "::") != value}
    return {key: _value(text) for key, text in changed.items() if key.split("::")[0] not in _OWN_KEYS}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
