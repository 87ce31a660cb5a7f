"""What back ends with fixed graphs share: one window at a time, dropout masks as an input of the decoder."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from medssl.core.errors import ConfigError
from medssl.networks.mc_dropout import generator_of

PARTS = ("encode", "decode", "draw_masks")


class OneWindowBackend(ABC):
    """Passes of a network with `encode`, `decode` and `draw_masks`, as MCDropoutUNet3D; ConfigError for others."""

    shares_encoder = True

    def __init__(self, network: nn.Module) -> None:
        require_parts(network)
        self.network: Any = network

    @abstractmethod
    def encode_window(self, window: Tensor) -> list[Tensor]:
        """Features of one window, (1, ...) each."""

    @abstractmethod
    def decode_window(self, features: list[Tensor], masks: list[Tensor]) -> Tensor:
        """Logits of one window with these dropout masks, (1, channels) each."""

    def encode(self, windows: Tensor) -> list[Tensor]:
        rows = [self.encode_window(window) for window in windows.split(1)]
        return [torch.cat(level) for level in zip(*rows, strict=True)]

    def decode(self, features: list[Tensor], seed: int) -> Tensor:
        masks = self.network.draw_masks(generator_of(seed))
        return self.decode_window(features, [mask.to(features[0].device) for mask in masks])

    def whole(self, windows: Tensor, seeds: Sequence[int] | None) -> Tensor:
        if seeds is None:
            masks = [torch.ones_like(mask).to(windows.device) for mask in self.network.draw_masks(generator_of(0))]
            return torch.cat([self.decode_window(self.encode_window(window), masks) for window in windows.split(1)])
        rows = zip(windows.split(1), seeds, strict=True)
        return torch.cat([self.decode(self.encode_window(window), seed) for window, seed in rows])


def require_parts(network: nn.Module) -> None:
    """ConfigError unless `network` has the parts that fixed graphs are made of."""
    missing = [part for part in PARTS if not hasattr(network, part)]
    if missing:
        raise ConfigError(
            f"network {type(network).__name__}: has no {', '.join(missing)}, which compile, openvino and int8 need; "
            "medssl.networks.MCDropoutUNet3D has. Use --backend eager."
        )
