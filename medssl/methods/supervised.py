"""Supervised training on the labelled cases alone: the lower bound (few labels) and upper bound (all labels)."""

from typing import Any

from torch import Tensor, nn


class Supervised(nn.Module):
    """The segmentation loss of `network` on labelled batches (`image`, `label`)."""

    def __init__(self, network: nn.Module, loss: nn.Module) -> None:
        super().__init__()
        self.network, self.loss = network, loss

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        return self.loss(self.network(batch["image"]), batch["label"])
