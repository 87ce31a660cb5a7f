"""A finished training as a MONAI bundle of its own: averaged weights, memory banks reduced to their means."""

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from medssl.core.run_folder import RunFolder
from medssl.inference.export import template_configs, write_bundle
from natural_image_ext.inference.predictor import PicturePredictor
from natural_image_ext.inference.scene_predictor import ScenePredictor
from natural_image_ext.networks.classifier import Classifier
from natural_image_ext.networks.segmentation import SegmentationNetwork


def export_classifier(folder: RunFolder, bundle_root: str | Path, predictor: PicturePredictor) -> Path | None:
    """Write `bundle/` into the run's folder: `bundle_root`'s inference with this run's classes, network and weights.

    Returns the path, None in all but the first process.
    """
    changes = {
        "image_size": predictor.size,
        "samples": predictor.inferer.samples,
        "seed": predictor.seed,
        "test_batch": predictor.batch_size,
    }
    return _export(
        folder,
        bundle_root,
        predictor.network,
        "natural_image_ext.networks.build_classifier",
        predictor.classes,
        changes,
        [predictor.size] * 2,
    )


def export_segmentation(
    folder: RunFolder, bundle_root: str | Path, predictor: ScenePredictor, crop: int
) -> Path | None:
    """The same for a segmentation network that was trained on squares of `crop` pixels."""
    changes = {"image_size": predictor.size, "crop": crop, **predictor.settings()}
    changes.pop("size")
    return _export(
        folder,
        bundle_root,
        predictor.network,
        "natural_image_ext.networks.build_segmentation",
        predictor.classes,
        changes,
        [crop] * 2,
    )


def _export(
    folder: RunFolder,
    bundle_root: str | Path,
    network: Classifier | SegmentationNetwork,
    builder: str,
    classes: Sequence[str],
    changes: dict[str, Any],
    spatial_shape: list[int],
) -> Path | None:
    if not folder.is_writer:
        return None
    network, arguments = copy.deepcopy(network), dict(network.arguments)
    for_inference = getattr(network.head, "for_inference", None)
    if for_inference is not None:
        network.head, arguments["bank_size"] = for_inference(), 1
    inference, metadata = template_configs(bundle_root)
    inference |= {"classes": list(classes), **changes}
    inference["network_def"] = {"_target_": builder, **arguments}
    formats = metadata["network_data_format"]
    formats["inputs"]["image"]["spatial_shape"] = spatial_shape
    formats["outputs"]["pred"]["channel_def"] = {str(number): name for number, name in enumerate(classes)}
    formats["outputs"]["pred"]["num_channels"] = len(classes)
    return write_bundle(folder, bundle_root, inference, metadata, network)
