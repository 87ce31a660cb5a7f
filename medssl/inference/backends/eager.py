"""The network as it is: on the CPU in float32, on a GPU in mixed precision."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from medssl.networks.mc_dropout import generator_of, seeded_dropout
from medssl.networks.outputs import main_output


class EagerBackend:
    """Passes of any network; one that has `encode`, `draw_masks` and `decode_kept` shares its encoder among samples."""

    def __init__(self, network: nn.Module) -> None:
        self.network: Any = network

    @property
    def shares_encoder(self) -> bool:
        return all(hasattr(self.network, name) for name in ("encode", "draw_masks", "decode_kept"))

    def whole(self, windows: Tensor, seeds: Sequence[int] | None) -> Tensor:
        dropout = nullcontext() if seeds is None else seeded_dropout(self.network, seeds)
        with mixed_precision(windows), dropout:
            return main_output(self.network(windows))

    def encode(self, windows: Tensor) -> list[Tensor]:
        with mixed_precision(windows):
            return self.network.encode(windows)

    def decode(self, features: list[Tensor], seed: int) -> Tensor:
        masks = [mask.to(features[0].device) for mask in self.network.draw_masks(generator_of(seed))]
        with mixed_precision(features[0]):
            return self.network.decode_kept(features, masks)


def mixed_precision(x: Tensor) -> AbstractContextManager:
    """Autocast on a GPU; on the CPU nothing, where half precision is slower."""
    return torch.autocast("cuda", enabled=x.is_cuda)
