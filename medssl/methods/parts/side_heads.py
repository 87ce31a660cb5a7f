"""Further outputs of any network, as training needs them: heads on what its last convolution sees.

The network stays as it is: what is exported has no such head.
"""

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from medssl.core.errors import ConfigError

Convolution = nn.Conv2d | nn.Conv3d | nn.ConvTranspose2d | nn.ConvTranspose3d
KINDS = (nn.Conv2d, nn.Conv3d, nn.ConvTranspose2d, nn.ConvTranspose3d)
SMOOTH = {4: "bilinear", 5: "trilinear"}  # interpolation for tensors of so many axes


class SideHeads(nn.Module):
    """Convolutions of width 1 by name, each with its own number of outputs, on features of a network's last layer."""

    def __init__(self, network: nn.Module, channels: Mapping[str, int]) -> None:
        super().__init__()
        layer = logits_layer(network)
        kind = nn.Conv3d if layer.weight.ndim == 5 else nn.Conv2d
        self.heads = nn.ModuleDict({name: kind(layer.in_channels, number, 1) for name, number in channels.items()})

    def forward(self, features: Tensor, size: torch.Size) -> dict[str, Tensor]:
        """What each head says of features, (B, channels, *size), by its name."""
        return {name: _of_size(head(features), size) for name, head in self.heads.items()}


class LogitsCopies(nn.Module):
    """Copies by name of a network's last layer with the weights it has now, which go their own ways.

    They begin with the network's logits, unless it adds something to its last layer (a residual unit at its end).
    """

    def __init__(self, network: nn.Module, names: tuple[str, ...]) -> None:
        super().__init__()
        layer = logits_layer(network)
        self.heads = nn.ModuleDict({name: copy.deepcopy(layer) for name in names})

    def forward(self, features: Tensor, size: torch.Size) -> dict[str, Tensor]:
        """The logits (B, classes, *size) of each copy, by its name."""
        return {name: _of_size(head(features), size) for name, head in self.heads.items()}


def logits_layer(network: nn.Module) -> Convolution:
    """The convolution that gives the logits: the last one of a network. ConfigError if it has none."""
    layers = [module for module in network.modules() if isinstance(module, KINDS)]
    if not layers:
        raise ConfigError(
            f"network {type(network).__name__}: has no convolution, and this method needs its last one for heads of "
            "its own. Choose another network_def, or a method without such heads."
        )
    return layers[-1]


def num_classes_of(network: nn.Module) -> int:
    """How many classes a network tells apart, with the background."""
    return logits_layer(network).out_channels


def with_features(network: nn.Module, images: Tensor) -> tuple[Tensor, Tensor]:
    """A network's logits (B, classes, *spatial), and what its last convolution made them of."""
    kept: list[Tensor] = []
    hook = logits_layer(network).register_forward_pre_hook(lambda _layer, inputs: kept.append(inputs[0]))
    try:
        logits = network(images)
    finally:
        hook.remove()
    if len(kept) != 1 or logits.shape[1] != num_classes_of(network):
        raise ConfigError(
            f"network {type(network).__name__}: its last convolution ran {len(kept)} times for {logits.shape[1]} "
            "classes, expected once, for the logits. Choose another network_def, or a method without heads of its own."
        )
    return logits, kept[0]


@contextmanager
def dropped_features(network: nn.Module, share: float) -> Iterator[nn.Module]:
    """`network` whose last convolution gets whole channels of its input at 0, a `share` of them, in the block."""

    def drop(_layer: nn.Module, inputs: tuple[Tensor, ...]) -> Tensor:
        features = inputs[0]
        kept = torch.rand(features.shape[:2], device=features.device) >= share
        scale = (kept / (1 - share)).to(features.dtype)
        return features * scale.view(*features.shape[:2], *[1] * (features.ndim - 2))

    hook = logits_layer(network).register_forward_pre_hook(drop)
    try:
        yield network
    finally:
        hook.remove()


def _of_size(values: Tensor, size: torch.Size) -> Tensor:
    """Values at the size of the image, where the last layer of the network works at a coarser one."""
    if values.shape[2:] == size:
        return values
    return F.interpolate(values, size=tuple(size), mode=SMOOTH[values.ndim], align_corners=False)
