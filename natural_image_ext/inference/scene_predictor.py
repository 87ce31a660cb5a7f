"""From an image to its segmentation and uncertainty: the one path of evaluation and of prediction."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from medssl.core.seeding import seeded
from medssl.inference.predictor import load_weights, parse_bundle
from medssl.uncertainty.latent_share import measures_latent
from medssl.uncertainty.maps import entropy_nats
from natural_image_ext.data.scene_views import SceneViews, normalised
from natural_image_ext.inference.scene_sampling import SampledSceneInferer, SlidingScenes
from natural_image_ext.networks.segmentation import SegmentationNetwork, upsampled


@dataclass(frozen=True)
class ScenePrediction:
    """classes (H, W) uint8 and entropy (H, W) in nats, on the image's own grid.

    information: mutual information of the draws of a latent, (H, W) in nats; None of a network without one.
    """

    classes: np.ndarray
    entropy: np.ndarray
    information: np.ndarray | None = None


@dataclass
class ScenePredictor:
    """A network, the names of its classes and the size of its images; weights come from `checkpoint` if given.

    size: of the longer side that images are brought to before the network sees them, None to keep them as they are.
    """

    network: SegmentationNetwork
    classes: tuple[str, ...]
    size: int | None = None
    inferer: SampledSceneInferer | SlidingScenes = field(default_factory=SampledSceneInferer)
    device: torch.device | str = "cpu"
    checkpoint: str | Path | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.checkpoint is not None:
            load_weights(self.network, self.checkpoint)
        self.network.to(self.device)

    def __call__(self, image: Tensor, name: str) -> ScenePrediction:
        """The prediction of image (3, H, W) uint8; the same for the same image, seed and name."""
        prepared = normalised(SceneViews(1, self.size).sized()(image))
        self.network.eval()
        has_latent = measures_latent(self.network, self.inferer.samples)
        predict = self.inferer.with_information if has_latent else self.inferer
        with seeded(self.seed, name):
            maps = predict(prepared.unsqueeze(0).to(self.device), self.network).float().cpu()
        maps = upsampled(maps, image.shape[1:])[0]
        probs = maps[:-1] if has_latent else maps
        information = maps[-1].numpy() * math.log(2) if has_latent else None
        entropy = entropy_nats(probs.movedim(0, -1)).clamp(0, math.log(len(self.classes)))
        return ScenePrediction(probs.argmax(0).to(torch.uint8).numpy(), entropy.numpy(), information)

    def settings(self) -> dict[str, Any]:
        """What a prediction depends on besides image and weights."""
        inferer = self.inferer
        return {
            "samples": inferer.samples,
            "seed": self.seed,
            "size": self.size,
            "evaluation": inferer.evaluation,
        }


def load_scene_predictor(bundle: str | Path, *, trust: bool | str = False, **overrides: Any) -> ScenePredictor:
    """The predictor of a trained bundle or of a run's folder; overrides and `trust` as in `parse_bundle`."""
    return parse_bundle(bundle, trust=trust, **overrides).get_parsed_content("predictor")
