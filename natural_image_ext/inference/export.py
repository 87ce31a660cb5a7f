"""A finished training as a MONAI bundle of its own: averaged weights, memory banks reduced to their means."""

import copy
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from medssl.core.run_folder import RunFolder
from medssl.inference.export import export_network
from natural_image_ext.inference.predictor import PicturePredictor
from natural_image_ext.inference.scene_predictor import ScenePredictor


def export_classifier(folder: RunFolder, bundle_root: str | Path, predictor: PicturePredictor) -> Path | None:
    """Write `bundle/` into the run's folder: `bundle_root`'s inference with this run's classes, network and weights.

    Returns the path, None in all but the first process.
    """
    changes = {
        "image_size": predictor.size,
        "resize_to": predictor.resize_to,
        "samples": predictor.inferer.samples,
        "seed": predictor.seed,
        "test_batch": predictor.batch_size,
    }
    return _export(folder, bundle_root, predictor, changes, [predictor.size] * 2)


def export_segmentation(
    folder: RunFolder, bundle_root: str | Path, predictor: ScenePredictor, crop: int
) -> Path | None:
    """The same for a segmentation network that was trained on squares of `crop` pixels."""
    changes = {"image_size": predictor.size, "crop": crop, **predictor.settings()}
    changes.pop("size")
    return _export(folder, bundle_root, predictor, changes, [crop] * 2)


def _export(
    folder: RunFolder,
    bundle_root: str | Path,
    predictor: PicturePredictor | ScenePredictor,
    changes: dict[str, Any],
    spatial_shape: list[int],
) -> Path | None:
    if not folder.is_writer:
        return None
    network, arguments = copy.deepcopy(predictor.network), dict(predictor.network.arguments)
    small_head = network.head.for_inference()
    if small_head is not network.head:
        network.head = small_head
        arguments["bank_size"] = 1
    changes = {
        "classes": list(predictor.classes),
        **changes,
        "network_def": {"_target_": network.builder, **arguments},
    }
    describe = partial(_describe_classes, predictor.classes, spatial_shape)
    return export_network(folder, bundle_root, network, changes, describe)


def _describe_classes(classes: Sequence[str], spatial_shape: list[int], metadata: dict[str, Any]) -> None:
    """What the network takes and gives: images of that size, a probability for each class."""
    formats = metadata["network_data_format"]
    formats["inputs"]["image"]["spatial_shape"] = spatial_shape
    formats["outputs"]["pred"]["channel_def"] = {str(number): name for number, name in enumerate(classes)}
    formats["outputs"]["pred"]["num_channels"] = len(classes)
