"""A network trained on the slices of scans as a bundle of its own, which predicts, reviews and serves whole scans."""

import json
from pathlib import Path
from typing import Any, cast

from medssl.data.facts_json import facts_to_json
from medssl.data.pipeline import Pipeline
from medssl.engine.checkpoint import save_tensors
from medssl.engine.run_folder import RunFolder
from medssl.files import write_text_atomically
from medssl.inference.export import copy_card, require_bundle
from medssl.inference.predictor import Predictor
from natural_image_ext.networks.segmentation import SegmentationNetwork


def export_slices(folder: RunFolder, bundle_root: str | Path, predictor: Predictor) -> Path | None:
    """Write `bundle/` into the run's folder: `bundle_root`'s scans_inference.json with this run's facts and weights.

    The memory banks stay whole, so that a training after review begins where this one ended. Returns the path, None in
    all but the first process.
    """
    if not folder.is_writer:
        return None
    source, target = Path(bundle_root), folder.path / "bundle"
    require_bundle(source)
    network = cast(SegmentationNetwork, predictor.network)
    inference = json.loads((source / "configs" / "scans_inference.json").read_text())
    inference |= {
        "bundle_root": ".",
        "data_facts": facts_to_json(predictor.pipeline),
        "network_def": {"_target_": "natural_image_ext.networks.build_segmentation", **network.arguments},
        "seed": predictor.seed,
        **predictor.inferer.settings(),
    }
    metadata = json.loads((source / "configs" / "metadata.json").read_text())
    _describe_slices(metadata, predictor.pipeline)
    write_text_atomically(target / "configs" / "inference.json", json.dumps(inference, indent=4))
    write_text_atomically(target / "configs" / "metadata.json", json.dumps(metadata, indent=4))
    copy_card(source, target)
    save_tensors(network.state_dict(), target / "models" / "model.pt")
    return target


def _describe_slices(metadata: dict[str, Any], pipeline: Pipeline) -> None:
    """What the network takes and gives: three neighbouring slices, a class a pixel."""
    classes, patch = {0: "background", **pipeline.facts.target.structures}, list(pipeline.geometry.patch_size[:2])
    is_ct = pipeline.facts.modality == "CT"
    metadata |= {
        "data_source": pipeline.facts.name,
        "data_type": "nifti, nrrd, dicom, hdf5",
        "image_classes": "three neighbouring slices of a scan, scaled to [-1, 1]",
        "intended_use": "Research only. Not a medical device.",
    }
    formats = metadata["network_data_format"]
    formats["inputs"]["image"] |= {
        "format": "hounsfield" if is_ct else "magnitude",
        "modality": pipeline.facts.modality,
        "spatial_shape": patch,
        "value_range": [-1, 1],
        "channel_def": {"0": "slice below", "1": "slice", "2": "slice above"},
    }
    formats["outputs"]["pred"] |= {
        "spatial_shape": patch,
        "num_channels": len(classes),
        "channel_def": {str(number): name for number, name in classes.items()},
    }
