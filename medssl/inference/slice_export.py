"""A network trained on the slices of scans as a bundle of its own, which predicts, reviews and serves whole scans."""

from pathlib import Path
from typing import Any, cast

from medssl.core.run_folder import RunFolder
from medssl.data.facts_json import facts_to_json
from medssl.data.pipeline import Pipeline
from medssl.inference.export import template_configs, write_bundle
from medssl.inference.predictor import Predictor
from natural_image_ext.networks.segmentation import SegmentationNetwork


def export_slices(folder: RunFolder, bundle_root: str | Path, predictor: Predictor) -> Path | None:
    """Write `bundle/` into the run's folder: `bundle_root`'s scans_inference.json with this run's facts and weights.

    The memory banks stay whole, so that a training after review begins where this one ended. Returns the path, None in
    all but the first process.
    """
    if not folder.is_writer:
        return None
    network = cast(SegmentationNetwork, predictor.network)
    inference, metadata = template_configs(bundle_root, "scans_inference.json")
    inference |= {
        "data_facts": facts_to_json(predictor.pipeline),
        "network_def": {"_target_": "natural_image_ext.networks.build_segmentation", **network.arguments},
        "seed": predictor.seed,
        **predictor.inferer.settings(),
    }
    _describe_slices(metadata, predictor.pipeline)
    return write_bundle(folder, bundle_root, inference, metadata, network)


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
