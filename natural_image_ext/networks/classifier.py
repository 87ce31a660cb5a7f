"""A classifier: backbone and head, built from names so that a checkpoint's network can be built again."""

from collections.abc import Callable
from typing import Any, Literal

from torch import Tensor, nn

from medssl.core.errors import ConfigError
from medssl.networks.mc_dropout import has_dropout
from medssl.networks.sampled import SampledNetwork, Sampler
from natural_image_ext.networks.backbones import build_backbone, width_of
from natural_image_ext.networks.heads import DrawingHead, Head, LinearHead
from natural_image_ext.networks.np_head import Activation, HeadNorm, NPHead

HeadKind = Literal["linear", "np"]


class Classifier(SampledNetwork):
    """A backbone with pooled features and a head on them; `arguments` are those of `build_classifier`."""

    builder = "natural_image_ext.networks.build_classifier"

    def __init__(self, backbone: nn.Module, head: Head, arguments: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.backbone, self.head, self.arguments = backbone, head, arguments or {}

    def forward(self, images: Tensor) -> Tensor:
        """Logits (B, C) of images (B, 3, H, W); with an `NPHead` the logarithms of its mean probabilities."""
        return self.head.logits(self.backbone(images))

    @property
    def draws_latents(self) -> bool:
        return isinstance(self.head, DrawingHead)

    def sampler(self, images: Tensor) -> Sampler:
        return self.head.sampler(lambda: self.backbone(images), has_dropout(self))


def build_classifier(
    backbone: str,
    num_classes: int,
    head: HeadKind = "np",
    dropout: float = 0.0,
    hidden: int | None = None,
    samples: int = 10,
    bank_size: int = 2560,
    norm_momentum: float | None = None,
    activation: Activation = "softmax",
    head_norm: HeadNorm = "none",
    head_dropout: float = 0.0,
    head_width: int | None = None,
) -> Classifier:
    """The classifier with the named backbone (see `build_backbone`) and a linear or a neural-process head.

    hidden: units of the neural process, by default a quarter of the features. samples: latent vectors of a prediction.
    norm_momentum: of batch norms, None for the backbone's own; the 0.001 of ours needs many thousand steps.
    activation, head_norm, head_dropout, head_width: of the neural process, see `NPHead`.
    """
    arguments = dict(locals())
    body = build_backbone(backbone, dropout)
    for module in body.modules():
        if isinstance(module, nn.BatchNorm2d) and norm_momentum is not None:
            module.momentum = norm_momentum
    features = width_of(body)
    heads: dict[str, Callable[[], Head]] = {
        "linear": lambda: LinearHead(features, num_classes),
        "np": lambda: NPHead(
            features, num_classes, hidden, samples, bank_size, activation, head_norm, head_dropout, head_width
        ),
    }
    if head not in heads:
        raise ConfigError(f"head '{head}' is unknown. Known: {', '.join(heads)}.")
    return Classifier(body, heads[head](), arguments)
