"""Mean probabilities of a segmentation network: of latent vectors, of decoder passes with dropout, or of one pass."""

from collections.abc import Iterator
from typing import Any

import torch
from monai.inferers import Inferer, SlidingWindowInferer
from torch import Tensor
from torch.nn import functional as F

from medssl.core.errors import ConfigError
from medssl.networks.mc_dropout import has_dropout, mc_dropout
from natural_image_ext.networks.np_seg_head import NPSegHead
from natural_image_ext.networks.segmentation import SegmentationNetwork, upsampled


class SampledSceneInferer(Inferer):
    """A MONAI inferer: images (B, 3, H, W) and a `SegmentationNetwork` to mean probabilities (B, C, H, W).

    A neural-process head draws all its latents in one pass of encoder and decoder; dropout of the decoder needs one
    pass of the encoder and `samples` of the decoder; a network without either has one pass in all. samples 0 is one
    pass without chance: of the latents' means, or without dropout.
    """

    evaluation = "whole"

    def __init__(self, samples: int = 5) -> None:
        super().__init__()
        self.samples = samples

    @torch.no_grad()
    def __call__(self, inputs: Tensor, network: SegmentationNetwork, *args: Any, **kwargs: Any) -> Tensor:  # type: ignore[override]
        total = sum(self._probabilities(inputs, network))
        return upsampled(total / total.sum(1, keepdim=True), inputs.shape[2:])  # type: ignore[union-attr]

    def _probabilities(self, images: Tensor, network: SegmentationNetwork) -> Iterator[Tensor]:
        """Probabilities on the grid of the maps; their sum is a multiple of the mean."""
        encoded = network.encoder(images)
        if isinstance(network.head, NPSegHead):
            yield network.head(network.decoder(encoded), self.samples).probs
            return
        passes = self.samples if has_dropout(network) else 1
        with mc_dropout(network, enabled=passes > 0):
            for _ in range(max(1, passes)):
                yield F.softmax(network.head(network.decoder(encoded)), dim=1)


class SlidingScenes(Inferer):
    """`inferer` in windows of `crop` pixels that move by two thirds of it, averaged where they overlap (Cityscapes)."""

    evaluation = "sliding"

    def __init__(self, inferer: SampledSceneInferer, crop: int) -> None:
        super().__init__()
        self.inferer, self.samples = inferer, inferer.samples
        self.windows = SlidingWindowInferer((crop, crop), sw_batch_size=1, overlap=1 / 3)

    def __call__(self, inputs: Tensor, network: SegmentationNetwork, *args: Any, **kwargs: Any) -> Tensor:  # type: ignore[override]
        return self.windows(inputs, lambda images: self.inferer(images, network))  # type: ignore[return-value]


def scene_inferer(samples: int = 5, evaluation: str = "whole", crop: int = 480) -> SampledSceneInferer | SlidingScenes:
    """evaluation "whole": images in one piece; "sliding": in windows of `crop` pixels."""
    if evaluation not in ("whole", "sliding"):
        raise ConfigError(f"evaluation '{evaluation}' is unknown. Known: whole, sliding.")
    inferer = SampledSceneInferer(samples)
    return SlidingScenes(inferer, crop) if evaluation == "sliding" else inferer
