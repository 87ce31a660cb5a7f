"""A finished training as a MONAI bundle of its own: configs, weights, card; ready for prediction and MONAI Label."""

import json
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from medssl.core.checkpoint import save_tensors
from medssl.core.errors import ConfigError
from medssl.core.files import write_text_atomically
from medssl.core.run_folder import RunFolder
from medssl.data.facts_json import facts_to_json
from medssl.data.pipeline import Pipeline
from medssl.inference.backends import check_backend
from medssl.inference.predictor import Predictor
from medssl.networks.network_config import config_of_built, network_config_of


def require_bundle(bundle_root: str | Path, backend: str = "eager") -> None:
    """ConfigError unless `bundle_root` is a bundle's folder and `backend` can evaluate what is trained.

    Asked before a training, needed after it.
    """
    if check_backend(backend) == "int8":
        raise ConfigError(
            "backend 'int8': its graphs are made of a finished run. Train with another, then run 'medssl quantise RUN'."
        )
    if not (Path(bundle_root) / "configs" / "inference.json").is_file():
        raise ConfigError(f"{bundle_root}: not the bundle's folder. Give it with --bundle_root.")


def export_bundle(
    folder: RunFolder,
    bundle_root: str | Path,
    predictor: Predictor,
    network_config: Mapping[str, Any] | None = None,
) -> Path | None:
    """Write `bundle/` into the run's folder: `bundle_root`'s inference with this run's data facts, network and weights.

    network_config: the resolved definition of the predictor's network, see `network_config_of`; without it the network
    says how it was built (`arguments`, as MCDropoutUNet3D has them), or ConfigError. Returns the path, None in all but
    the first process.
    """
    network = predictor.network
    definition = config_of_built(network) if network_config is None else network_config_of(network_config)
    changes = {"network_def": definition, **scan_settings(predictor), **predictor.inferer.bundle_settings()}
    window = getattr(predictor.inferer, "window", None)
    if window is not None and tuple(window) != tuple(predictor.pipeline.geometry.patch_size):
        inference, _ = template_configs(bundle_root)
        changes["inferer"] = {**inference["inferer"], "window": list(window)}
    return export_network(folder, bundle_root, network, changes, partial(_describe_outputs, predictor.pipeline))


def export_network(
    folder: RunFolder,
    bundle_root: str | Path,
    network: nn.Module,
    changes: Mapping[str, Any],
    describe: Callable[[dict[str, Any]], None],
    template: str = "inference.json",
) -> Path | None:
    """Write `bundle/` into the run's folder: the steps that all exports share.

    changes: of the keys of `bundle_root`'s inference config `template`. describe: writes into its metadata what the
    network takes and gives. Returns the path, None in all but the first process.
    """
    if not folder.is_writer:
        return None
    inference, metadata = template_configs(bundle_root, template)
    describe(metadata)
    return write_bundle(folder, bundle_root, {**inference, **changes}, metadata, network)


def scan_settings(predictor: Predictor) -> dict[str, Any]:
    """What the inference config of a network of scans has of this run besides network and inferer."""
    return {"data_facts": facts_to_json(predictor.pipeline), "seed": predictor.seed}


def template_configs(
    bundle_root: str | Path, inference: str = "inference.json"
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The inference config of that name and the metadata of a bundle, to be changed for a run; ConfigError if none."""
    require_bundle(bundle_root)
    configs = Path(bundle_root) / "configs"
    return json.loads((configs / inference).read_text()), json.loads((configs / "metadata.json").read_text())


def write_bundle(
    folder: RunFolder,
    bundle_root: str | Path,
    inference: dict[str, Any],
    metadata: dict[str, Any],
    network: nn.Module,
) -> Path:
    """Write `bundle/` into the run's folder: these configs, these weights, card and licence of `bundle_root`."""
    target = folder.path / "bundle"
    configs = {"inference.json": inference | {"bundle_root": "."}, "metadata.json": metadata}
    for name, content in configs.items():
        write_text_atomically(target / "configs" / name, json.dumps(content, indent=4))
    for name in ("LICENSE", "docs/README.md", "configs/logging.conf"):
        if (Path(bundle_root) / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(Path(bundle_root) / name, target / name)
    save_tensors(network.state_dict(), target / "models" / "model.pt")
    return target


def _describe_outputs(pipeline: Pipeline, metadata: dict[str, Any]) -> None:
    classes = {0: "background", **pipeline.facts.target.structures}
    data_format = metadata["network_data_format"]
    if pipeline.facts.modality != "CT":
        data_format["inputs"]["image"] |= {"modality": pipeline.facts.modality, "format": "magnitude"}
    data_format["inputs"]["image"]["spatial_shape"] = list(pipeline.geometry.patch_size)
    data_format["outputs"]["pred"]["spatial_shape"] = list(pipeline.geometry.patch_size)
    data_format["outputs"]["pred"]["num_channels"] = len(classes)
    data_format["outputs"]["pred"]["channel_def"] = {str(index): name for index, name in classes.items()}
