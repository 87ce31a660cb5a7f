"""Mean probabilities of a classifier: of latent vectors, of passes with dropout, or of the one pass it has."""

from typing import Any

import torch
from monai.inferers import Inferer
from torch import Tensor

from medssl.networks.mc_dropout import has_dropout, mc_dropout
from natural_image_ext.networks.classifier import Classifier
from natural_image_ext.networks.np_head import NPHead


class SampledInferer(Inferer):
    """A MONAI inferer: images (N, 3, H, W) and a `Classifier` to mean probabilities (N, C) of `samples` draws.

    A neural-process head decodes all draws in one pass; a network with dropout needs a pass for each; one without
    either has one pass in all.
    """

    def __init__(self, samples: int = 10) -> None:
        super().__init__()
        self.samples = samples

    @torch.no_grad()
    def __call__(self, inputs: Tensor, network: Classifier, *args: Any, **kwargs: Any) -> Tensor:  # type: ignore[override]
        if isinstance(network.head, NPHead):
            return network.head(network.backbone(inputs), self.samples).probs
        passes = self.samples if has_dropout(network) else 1
        with mc_dropout(network):
            return torch.stack([torch.softmax(network(inputs), dim=-1) for _ in range(passes)]).mean(0)
