"""A finished training as a MONAI bundle of its own: averaged weights, memory banks reduced to their means."""

import copy
import json
from pathlib import Path

from medssl.engine.checkpoint import save_tensors
from medssl.engine.run_folder import RunFolder
from medssl.files import write_text_atomically
from medssl.inference.export import copy_card, require_bundle
from natural_image_ext.inference.predictor import PicturePredictor
from natural_image_ext.networks.np_head import NPHead


def export_classifier(folder: RunFolder, bundle_root: str | Path, predictor: PicturePredictor) -> Path | None:
    """Write `bundle/` into the run's folder: `bundle_root`'s inference with this run's classes, network and weights.

    Returns the path, None in all but the first process.
    """
    if not folder.is_writer:
        return None
    source, target = Path(bundle_root), folder.path / "bundle"
    require_bundle(source)
    network = copy.deepcopy(predictor.network)
    arguments = dict(network.arguments)
    if isinstance(network.head, NPHead):
        network.head = network.head.for_inference()
        arguments["bank_size"] = 1
    inference = json.loads((source / "configs" / "inference.json").read_text())
    inference |= {
        "bundle_root": ".",
        "classes": list(predictor.classes),
        "image_size": predictor.size,
        "seed": predictor.seed,
        "samples": predictor.inferer.samples,
        "network_def": {"_target_": "natural_image_ext.networks.build_classifier", **arguments},
    }
    metadata = json.loads((source / "configs" / "metadata.json").read_text())
    formats = metadata["network_data_format"]
    formats["inputs"]["image"]["spatial_shape"] = [predictor.size] * 2
    formats["outputs"]["pred"]["channel_def"] = {str(number): name for number, name in enumerate(predictor.classes)}
    formats["outputs"]["pred"]["num_channels"] = len(predictor.classes)
    write_text_atomically(target / "configs" / "inference.json", json.dumps(inference, indent=4))
    write_text_atomically(target / "configs" / "metadata.json", json.dumps(metadata, indent=4))
    copy_card(source, target)
    save_tensors(network.state_dict(), target / "models" / "model.pt")
    return target
