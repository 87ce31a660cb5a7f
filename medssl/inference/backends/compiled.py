"""torch.compile: encoder and decoder as generated code. The first window takes as long as a compiler does."""

import torch
from torch import Tensor, nn

from medssl.inference.backends.eager import mixed_precision
from medssl.inference.backends.one_window import OneWindowBackend


class CompiledBackend(OneWindowBackend):
    """The network's parts by torch.compile, for windows of one size."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__(network)
        self._encode = torch.compile(self.network.encode, dynamic=False)
        self._decode = torch.compile(self.network.decode, dynamic=False)

    def encode_window(self, window: Tensor) -> list[Tensor]:
        with mixed_precision(window):
            return self._encode(window)

    def decode_window(self, features: list[Tensor], masks: list[Tensor]) -> Tensor:
        with mixed_precision(features[0]):
            return self._decode(features, masks)
