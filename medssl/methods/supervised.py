"""Supervised training on the labelled cases alone: the lower bound (few labels) and upper bound (all labels)."""

from typing import Any

from torch import Tensor

from medssl.methods.facts import MethodFacts
from medssl.methods.method import Method


class Supervised(Method):
    """The segmentation loss of `network` on labelled batches (`image`, `label`)."""

    facts = MethodFacts("supervised", learns_from_unlabelled=False, place=0)

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        return self.loss(self.network(batch["image"]), batch["label"])
