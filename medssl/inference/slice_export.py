"""A network trained on the slices of scans as a bundle of its own, which predicts, reviews and serves whole scans."""

from functools import partial
from pathlib import Path
from typing import Any

from medssl.core.errors import ConfigError
from medssl.core.run_folder import RunFolder
from medssl.data.pipeline import Pipeline
from medssl.inference.export import export_network, scan_settings
from medssl.inference.predictor import Predictor
from medssl.networks.sampled import SampledNetwork


def export_slices(folder: RunFolder, bundle_root: str | Path, predictor: Predictor) -> Path | None:
    """Write `bundle/` into the run's folder: `bundle_root`'s scans_inference.json with this run's facts and weights.

    The memory banks stay whole, so that a training after review begins where this one ended. Returns the path, None in
    all but the first process. Raises ConfigError for a network that does not say how it is built.
    """
    network = predictor.network
    if not isinstance(network, SampledNetwork):
        raise ConfigError(
            f"{type(network).__name__}: cannot be exported as a network of slices, expected a SampledNetwork, which "
            "says how it is built. Derive it from medssl.networks.sampled.SampledNetwork."
        )
    changes = {
        "network_def": {"_target_": network.builder, **network.arguments},
        **scan_settings(predictor),
        **predictor.inferer.bundle_settings(),
    }
    describe = partial(_describe_slices, predictor.pipeline)
    return export_network(folder, bundle_root, network, changes, describe, "scans_inference.json")


def _describe_slices(pipeline: Pipeline, metadata: dict[str, Any]) -> None:
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
