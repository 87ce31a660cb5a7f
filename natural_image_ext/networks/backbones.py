"""Backbones by name: each maps images (B, 3, H, W) to pooled features (B, num_features)."""

from collections.abc import Callable

import timm
from torch import nn

from medssl.core.errors import ConfigError
from natural_image_ext.networks.wide_resnet import WideResNet, wrn_10_1, wrn_28_2, wrn_28_8, wrn_37_2

OWN: dict[str, Callable[[float], WideResNet]] = {
    "wrn_28_2": wrn_28_2,
    "wrn_28_8": wrn_28_8,
    "wrn_37_2": wrn_37_2,
    "wrn_10_1": wrn_10_1,
}


class DroppedFeatures(nn.Sequential):
    """A backbone without dropout of its own, and dropout on its features."""

    def __init__(self, backbone: nn.Module, dropout: float) -> None:
        super().__init__(backbone, nn.Dropout(dropout))
        self.num_features = width_of(backbone)


def width_of(backbone: nn.Module) -> int:
    """Features of a picture: what timm's networks call so, behind a last layer of their head where they have one."""
    return getattr(backbone, "head_hidden_size", None) or backbone.num_features  # type: ignore[return-value]


def build_backbone(name: str, dropout: float = 0.0) -> nn.Module:
    """A wide residual network of ours, or any network of timm (resnet50, densenet169, ...), without weights.

    dropout: inside of the blocks of ours, on the features of timm's. Raises ConfigError for an unknown name.
    """
    if name in OWN:
        return OWN[name](dropout)
    if not timm.is_model(name):
        raise ConfigError(f"backbone '{name}' is unknown. Known: {', '.join(OWN)}, and the networks of timm.")
    backbone = timm.create_model(name, pretrained=False, num_classes=0)
    return DroppedFeatures(backbone, dropout) if dropout else backbone
