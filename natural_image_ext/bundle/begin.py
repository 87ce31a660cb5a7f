"""What the configurations of these bundles call first, and the session that they share."""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from medssl.bundle.keys import check_keys
from medssl.bundle.scan_data import ScanData, ScanDataOptions
from medssl.bundle.session import Session, SessionOptions, default_run_name
from medssl.core.options import marked, names_of
from medssl.core.seeding import be_deterministic
from medssl.engine.explaining import explain_errors
from medssl.engine.trainer import MethodTrainer
from medssl.inference.export import require_bundle
from natural_image_ext.bundle.picture_data import PictureData, PictureDataOptions
from natural_image_ext.bundle.picture_stage import PictureChoices, PictureOptions, PictureStage
from natural_image_ext.bundle.scene_data import SceneData, SceneDataOptions
from natural_image_ext.bundle.scene_stage import SceneChoices, SceneOptions, SegmentationStage

PICTURE_PARTS = (PictureDataOptions, PictureOptions, SessionOptions)
SCENE_PARTS = (SceneDataOptions, SceneOptions, ScanDataOptions, SessionOptions)
PLACES_IN_JSON = ("bundle_root", "device", "start_from")


def begin_pictures(bundle_root: str | Path, seed: int) -> None:
    """Before anything is built: errors are explained, keys are checked, everything is seeded."""
    _begin(bundle_root, seed, PICTURE_PARTS)


def begin_scenes(bundle_root: str | Path, seed: int) -> None:
    """The same for scenes and slices."""
    _begin(bundle_root, seed, SCENE_PARTS)


def natural_session(
    bundle: str,
    data: PictureData | SceneData | ScanData,
    choices: PictureChoices | SceneChoices,
    network: nn.Module,
    device: torch.device | str,
    **listed: Any,
) -> Session:
    """The session of a training on pictures, scenes or slices."""
    asked = data.options
    is_pictures = isinstance(data, PictureData)
    variant = choices.options.variant if is_pictures else f"{choices.options.variant}_{choices.options.head}"  # type: ignore[union-attr]
    lists_dir = getattr(asked, "lists_dir", None) if isinstance(data, SceneData) else None
    name = default_run_name(bundle, asked.dataset_name, asked.labelled, asked.seed, variant, lists_dir)
    parts = PICTURE_PARTS if is_pictures else SCENE_PARTS
    incidental = [key for part in parts for key in marked(part, "incidental")]
    keys = {"data": names_of(type(asked)), "place": [*dict.fromkeys(incidental), *PLACES_IN_JSON]}
    described = data.pipeline if isinstance(data, ScanData) else data.source
    return Session(
        bundle, choices, described, data.split, network, device, asked.seed, run_name=name, keys=keys, **listed
    )


def trainer_of(stage: PictureStage | SegmentationStage, max_epochs: int | None = None) -> MethodTrainer:
    """The stage's trainer. max_epochs: as in the stage's choices, where MONAI looks for it."""
    return stage.trainer


def _begin(bundle_root: str | Path, seed: int, parts: tuple[type, ...]) -> None:
    explain_errors()
    require_bundle(bundle_root)
    check_keys(bundle_root, [*names_of(*parts), *PLACES_IN_JSON, "channels_last"])
    be_deterministic(seed)
