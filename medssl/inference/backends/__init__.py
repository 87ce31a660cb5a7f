"""What computes a pass: back ends of one face, so that modes and statistics need not know which it is."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from torch import Tensor, nn

from medssl.core.options import make_options
from medssl.core.prediction_options import SamplingOptions
from medssl.inference.backends.compiled import CompiledBackend
from medssl.inference.backends.eager import EagerBackend
from medssl.inference.backends.int8 import Int8Backend
from medssl.inference.backends.one_window import require_parts
from medssl.inference.backends.openvino import OpenVINOBackend, converted


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
    return make_options(SamplingOptions, {"backend": name}).backend


def require_network_for(name: str, network: nn.Module) -> None:
    """ConfigError if the back end `name` cannot compute passes of `network`; `eager` takes any."""
    if check_backend(name) != "eager":
        require_parts(network)


def open_backend(name: str, network: nn.Module, window: Sequence[int], models_dir: str | Path | None = None) -> Backend:
    """The back end `name` for windows of one size of `network`; ConfigError where it cannot be had.

    models_dir: the folder of the network's weights, where `int8` has its graphs.
    """
    if name == "compile":
        return CompiledBackend(network)
    if name == "openvino":
        return OpenVINOBackend(network, *converted(network, window))
    if name == "int8":
        return Int8Backend(network, window, models_dir)
    return EagerBackend(network)
