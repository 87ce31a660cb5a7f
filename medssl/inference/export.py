"""A finished training as a MONAI bundle of its own: configs, weights, card; ready for prediction and MONAI Label."""

import json
import shutil
from pathlib import Path
from typing import cast

from medssl.data.facts_json import facts_to_json
from medssl.data.pipeline import Pipeline
from medssl.engine.checkpoint import save_tensors
from medssl.engine.run_folder import RunFolder
from medssl.errors import ConfigError
from medssl.files import write_text_atomically
from medssl.inference.backends import check_backend
from medssl.inference.mc_dropout import MCDropoutInferer
from medssl.inference.predictor import Predictor


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


def export_bundle(folder: RunFolder, bundle_root: str | Path, predictor: Predictor) -> Path | None:
    """Write `bundle/` into the run's folder: `bundle_root`'s inference with this run's data facts, network and weights.

    The network names its constructor's arguments in `arguments`. Returns the path, None in all but the first process.
    """
    if not folder.is_writer:
        return None
    source, target = Path(bundle_root), folder.path / "bundle"
    require_bundle(source)
    network, pipeline = predictor.network, predictor.pipeline
    inferer = cast(MCDropoutInferer, predictor.inferer)
    inference = json.loads((source / "configs" / "inference.json").read_text())
    inference["network_def"] = {
        "_target_": f"{type(network).__module__}.{type(network).__name__}",
        **network.arguments,  # type: ignore[dict-item]
    }
    inference["data_facts"] = facts_to_json(pipeline)
    inference |= {
        "bundle_root": ".",
        "seed": predictor.seed,
        "samples": inferer.samples,
        "stride": list(inferer.stride),
        "window_batch": inferer.window_batch,
        "mode": inferer.mode,
        "backend": inferer.backend,
    }
    metadata = json.loads((source / "configs" / "metadata.json").read_text())
    _describe_outputs(metadata, pipeline)
    write_text_atomically(target / "configs" / "inference.json", json.dumps(inference, indent=4))
    write_text_atomically(target / "configs" / "metadata.json", json.dumps(metadata, indent=4))
    copy_card(source, target)
    save_tensors(network.state_dict(), target / "models" / "model.pt")
    return target


def copy_card(source: Path, target: Path) -> None:
    """Licence, card and logging of a bundle, as they are."""
    for name in ("LICENSE", "docs/README.md", "configs/logging.conf"):
        if (source / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, target / name)


def _describe_outputs(metadata: dict, pipeline: Pipeline) -> None:
    classes = {0: "background", **pipeline.facts.target.structures}
    data_format = metadata["network_data_format"]
    if pipeline.facts.modality != "CT":
        data_format["inputs"]["image"] |= {"modality": pipeline.facts.modality, "format": "magnitude"}
    data_format["inputs"]["image"]["spatial_shape"] = list(pipeline.geometry.patch_size)
    data_format["outputs"]["pred"]["spatial_shape"] = list(pipeline.geometry.patch_size)
    data_format["outputs"]["pred"]["num_channels"] = len(classes)
    data_format["outputs"]["pred"]["channel_def"] = {str(index): name for index, name in classes.items()}
