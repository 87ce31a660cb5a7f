"""Mean probabilities of a segmentation network: of latent vectors, of decoder passes with dropout, or of one pass."""

from dataclasses import dataclass
from typing import Any

import torch
from monai.inferers import Inferer, SlidingWindowInferer
from torch import Tensor

from medssl.core.options import make_options, option
from medssl.networks.mc_dropout import mc_dropout
from medssl.uncertainty.maps import mutual_information
from natural_image_ext.networks.segmentation import SegmentationNetwork, upsampled


@dataclass(frozen=True)
class SceneSampling:
    """How a segmentation network predicts images."""

    samples: int = option(5, "samples of each prediction: latent maps, or passes with dropout; 0: one pass", at_least=0)
    evaluation: str = option(
        "whole", "predict whole images, or sliding windows of side crop", choices=("whole", "sliding")
    )
    crop: int = option(480, "side of the windows, in pixels", at_least=1)


class SampledSceneInferer(Inferer):
    """A MONAI inferer: images (B, 3, H, W) and a `SegmentationNetwork` to mean probabilities (B, C, H, W).

    A neural-process head draws all its latents in one pass of encoder and decoder; dropout of the decoder needs one
    pass of the encoder and `samples` of the decoder; a network without either has one pass in all. samples 0 is one
    pass without chance: of the latents' means, or without dropout.
    """

    evaluation = "whole"

    def __init__(self, samples: int = 5) -> None:
        super().__init__()
        self.samples = make_options(SceneSampling, {"samples": samples}).samples

    @torch.no_grad()
    def __call__(self, inputs: Tensor, network: SegmentationNetwork, *args: Any, **kwargs: Any) -> Tensor:  # type: ignore[override]
        draw = network.sampler(inputs)
        with mc_dropout(network, enabled=self.samples > 0):
            total = sum(group.mean(0) for group in draw(self.samples))  # groups are alike in size
        return upsampled(total / total.sum(1, keepdim=True), inputs.shape[2:])  # type: ignore[union-attr]

    @torch.no_grad()
    def with_information(self, inputs: Tensor, network: SegmentationNetwork) -> Tensor:
        """The same, and behind the classes the mutual information of the draws in bits: (B, C + 1, H, W).

        All draws are held at once, as a network that draws latents has them anyway. The information is that of the
        network's own grid: on a finer one, interpolation would add some.
        """
        with mc_dropout(network, enabled=self.samples > 0):
            draws = torch.cat(list(network.sampler(inputs)(self.samples)))
        mean = draws.mean(0)
        maps = [mean / mean.sum(1, keepdim=True), mutual_information(draws).unsqueeze(1).to(mean.dtype)]
        return upsampled(torch.cat(maps, dim=1), inputs.shape[2:])


class SlidingScenes(Inferer):
    """`inferer` in windows of `crop` pixels that move by two thirds of it, averaged where they overlap (Cityscapes)."""

    evaluation = "sliding"

    def __init__(self, inferer: SampledSceneInferer, crop: int) -> None:
        super().__init__()
        self.inferer, self.samples = inferer, inferer.samples
        self.windows = SlidingWindowInferer((crop, crop), sw_batch_size=1, overlap=1 / 3)

    def __call__(self, inputs: Tensor, network: SegmentationNetwork, *args: Any, **kwargs: Any) -> Tensor:  # type: ignore[override]
        return self.windows(inputs, lambda images: self.inferer(images, network))  # type: ignore[return-value]

    def with_information(self, inputs: Tensor, network: SegmentationNetwork) -> Tensor:
        """As `SampledSceneInferer.with_information`."""
        return self.windows(inputs, lambda images: self.inferer.with_information(images, network))  # type: ignore[return-value]


def scene_inferer(samples: int = 5, evaluation: str = "whole", crop: int = 480) -> SampledSceneInferer | SlidingScenes:
    """evaluation "whole": images in one piece; "sliding": in windows of `crop` pixels."""
    asked = make_options(SceneSampling, {"samples": samples, "evaluation": evaluation, "crop": crop})
    inferer = SampledSceneInferer(asked.samples)
    return SlidingScenes(inferer, asked.crop) if asked.evaluation == "sliding" else inferer
