"""OpenVINO on the CPU: encoder and decoder as fixed graphs in float32, dropout masks as inputs."""

import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from medssl.errors import ConfigError
from medssl.inference.backends.one_window import OneWindowBackend
from medssl.networks.mc_dropout import generator_of


class OpenVINOBackend(OneWindowBackend):
    """The network's parts as OpenVINO graphs for windows of one size; ConfigError without the extra `openvino`."""

    def __init__(self, network: nn.Module, window: Sequence[int]) -> None:
        super().__init__(network)
        example = torch.zeros(1, self.network.arguments["in_channels"], *window)
        with torch.inference_mode(False), torch.no_grad():
            features = self.network.encode(example)
            masks = self.network.draw_masks(generator_of(0))
            self._encoder = _compiled(EncoderGraph(self.network), (example,))
            self._decoder = _compiled(DecoderGraph(self.network, len(features)), (*features, *masks))

    def encode_window(self, window: Tensor) -> list[Tensor]:
        found = self._encoder([window.numpy(force=True)])
        return [torch.from_numpy(found[index].copy()) for index in range(len(found))]

    def decode_window(self, features: list[Tensor], masks: list[Tensor]) -> Tensor:
        found = self._decoder([tensor.numpy(force=True) for tensor in (*features, *masks)])
        return torch.from_numpy(found[0].copy())


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


def _compiled(graph: nn.Module, example: tuple[Tensor, ...]) -> Any:
    openvino = import_openvino()
    model = openvino.convert_model(graph.eval(), example_input=example, input=[tuple(x.shape) for x in example])
    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": torch.get_num_threads()}
    return openvino.Core().compile_model(model, "CPU", settings)
