"""OpenVINO on the CPU: encoder and decoder as fixed graphs, dropout masks as inputs."""

import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from medssl.core.errors import ConfigError
from medssl.inference.backends.one_window import OneWindowBackend, require_parts
from medssl.networks.mc_dropout import generator_of


class OpenVINOBackend(OneWindowBackend):
    """Passes by two OpenVINO graphs, the encoder and the decoder of `network` for windows of one size."""

    def __init__(self, network: nn.Module, encoder: Any, decoder: Any) -> None:
        super().__init__(network)
        self._encoder, self._decoder = compiled(encoder), compiled(decoder)

    def encode_window(self, window: Tensor) -> list[Tensor]:
        features = self._encoder([window.numpy(force=True)])
        return [torch.from_numpy(features[index].copy()) for index in range(len(features))]

    def decode_window(self, features: list[Tensor], masks: list[Tensor]) -> Tensor:
        outputs = self._decoder([tensor.numpy(force=True) for tensor in (*features, *masks)])
        return torch.from_numpy(outputs[0].copy())


class EncoderGraph(nn.Module):
    """The encoder, in a form that exports: features as a tuple."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(self, window: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.network.encode(window))


class DecoderGraph(nn.Module):
    """The decoder, in a form that exports: `levels` features, then masks, one input each."""

    def __init__(self, network: Any, levels: int) -> None:
        super().__init__()
        self.network, self.levels = network, levels

    def forward(self, *tensors: Tensor) -> Tensor:
        return self.network.decode(list(tensors[: self.levels]), list(tensors[self.levels :]))


def import_openvino() -> ModuleType:
    """OpenVINO without its telemetry; ConfigError says how to get it where it is missing."""
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]  # it reports every use over the network
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_VNNI")  # virtual machines claim AMX that they do not have
    try:
        import openvino  # noqa: PLC0415  (an extra)
    except ImportError as error:
        raise ConfigError("backend 'openvino': not installed. Run: pip install 'medssl[openvino]'") from error
    return openvino


def converted(network: Any, window: Sequence[int]) -> tuple[Any, Any]:
    """Encoder and decoder of `network` as OpenVINO models in float32; ConfigError without the extra `openvino`."""
    require_parts(network)
    example = torch.zeros(1, network.arguments["in_channels"], *window)
    with torch.inference_mode(False), torch.no_grad():
        features = network.encode(example)
        masks = network.draw_masks(generator_of(0))
        encoder = _converted(EncoderGraph(network), (example,))
        return encoder, _converted(DecoderGraph(network, len(features)), (*features, *masks))


def compiled(model: Any) -> Any:
    """The model ready to run on the CPU: what is not quantised in float32, as many threads as torch has."""
    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": torch.get_num_threads()}
    return import_openvino().Core().compile_model(model, "CPU", settings)


def _converted(graph: nn.Module, example: tuple[Tensor, ...]) -> Any:
    shapes = [tuple(x.shape) for x in example]
    return import_openvino().convert_model(graph.eval(), example_input=example, input=shapes)
