"""Mean probabilities of a classifier: of latent vectors, of passes with dropout, or of the one pass it has."""

from dataclasses import dataclass
from typing import Any

import torch
from monai.inferers import Inferer
from torch import Tensor

from medssl.core.options import make_options, option
from medssl.networks.mc_dropout import mc_dropout
from natural_image_ext.networks.classifier import Classifier


@dataclass(frozen=True)
class PictureSampling:
    """How a classifier predicts pictures."""

    samples: int = option(10, "samples of each prediction: latent vectors, or passes with dropout", at_least=1)
    test_batch: int = option(64, "pictures computed at once", at_least=1)


class SampledInferer(Inferer):
    """A MONAI inferer: images (N, 3, H, W) and a `Classifier` to mean probabilities (N, C) of `samples` draws.

    A neural-process head decodes all draws in one pass; a network with dropout needs a pass for each; one without
    either has one pass in all.
    """

    def __init__(self, samples: int = 10) -> None:
        super().__init__()
        self.samples = make_options(PictureSampling, {"samples": samples}).samples

    def __call__(self, inputs: Tensor, network: Classifier, *args: Any, **kwargs: Any) -> Tensor:  # type: ignore[override]
        return self.draws(inputs, network).mean(0)

    @torch.no_grad()
    def draws(self, inputs: Tensor, network: Classifier) -> Tensor:
        """The probabilities by every draw, (T, N, C)."""
        draw = network.sampler(inputs)
        with mc_dropout(network):
            return torch.cat(list(draw(self.samples)))
