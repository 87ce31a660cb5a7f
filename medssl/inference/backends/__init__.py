"""What computes a pass: back ends of one face, so that modes and statistics need not know which it is."""

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor, nn

from medssl.errors import ConfigError
from medssl.inference.backends.compiled import CompiledBackend
from medssl.inference.backends.eager import EagerBackend
from medssl.inference.backends.openvino import OpenVINOBackend

BACKENDS = ("eager", "compile", "openvino")


class Backend(Protocol):
    """Passes of one network. Seeds name the dropout masks: the same ones on every back end."""

    @property
    def shares_encoder(self) -> bool:
        """Whether `encode` and `decode` are there, so that samples of a window can share the encoder."""

    def whole(self, windows: Tensor, seeds: Sequence[int] | None) -> Tensor:
        """Logits of a pass for each of `windows` (n, C, ...) with its seed; None is without dropout."""

    def encode(self, windows: Tensor) -> list[Tensor]:
        """Encoder features of `windows`, each (n, ...)."""

    def decode(self, features: list[Tensor], seed: int) -> Tensor:
        """Logits (1, K, ...) of one sample from the features of one window."""


def check_backend(name: str) -> str:
    """`name` if there is such a back end; ConfigError otherwise."""
    if name not in BACKENDS:
        raise ConfigError(f"backend '{name}': there are {', '.join(BACKENDS)}.")
    return name


def open_backend(name: str, network: nn.Module, window: Sequence[int]) -> Backend:
    """The back end `name` for windows of one size of `network`; ConfigError where it cannot be had."""
    if name == "compile":
        return CompiledBackend(network)
    if name == "openvino":
        return OpenVINOBackend(network, window)
    return EagerBackend(network)
