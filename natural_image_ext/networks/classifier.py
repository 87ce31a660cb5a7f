"""A classifier: backbone and head, built from names so that a checkpoint's network can be built again."""

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn

from medssl.core.errors import ConfigError
from natural_image_ext.networks.backbones import build_backbone, width_of
from natural_image_ext.networks.np_head import NPHead, NPOutput

HeadKind = Literal["linear", "np"]


class Classifier(nn.Module):
    """A backbone with pooled features and a head on them; `arguments` are those of `build_classifier`."""

    def __init__(self, backbone: nn.Module, head: nn.Module, arguments: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.backbone, self.head, self.arguments = backbone, head, arguments or {}

    def forward(self, images: Tensor) -> Tensor:
        """Logits (B, C) of images (B, 3, H, W); with an `NPHead` the logarithms of its mean probabilities."""
        output = self.head(self.backbone(images))
        if isinstance(output, NPOutput):
            return output.probs.clamp_min(torch.finfo(output.logits.dtype).tiny).log()
        return output


def build_classifier(
    backbone: str,
    num_classes: int,
    head: HeadKind = "np",
    dropout: float = 0.0,
    hidden: int | None = None,
    samples: int = 10,
    bank_size: int = 2560,
    norm_momentum: float | None = None,
) -> Classifier:
    """The classifier with the named backbone (see `build_backbone`) and a linear or a neural-process head.

    hidden: units of the neural process, by default a quarter of the features. samples: latent vectors of a prediction.
    norm_momentum: of batch norms, None for the backbone's own; the 0.001 of ours needs many thousand steps.
    """
    arguments = dict(locals())
    body = build_backbone(backbone, dropout)
    for module in body.modules():
        if isinstance(module, nn.BatchNorm2d) and norm_momentum is not None:
            module.momentum = norm_momentum
    features = width_of(body)
    heads: dict[str, Callable[[], nn.Module]] = {
        "linear": lambda: nn.Linear(features, num_classes),
        "np": lambda: NPHead(features, num_classes, hidden, samples, bank_size),
    }
    if head not in heads:
        raise ConfigError(f"head '{head}' is unknown. Known: {', '.join(heads)}.")
    return Classifier(body, heads[head](), arguments)
