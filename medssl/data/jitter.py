"""Random contrast and brightness of an image, in one pass over its voxels."""

from collections.abc import Hashable, Mapping
from typing import Any

import torch
from monai import transforms as mt
from monai.config import KeysCollection
from torch import Tensor


class RandJitterd(mt.MapTransform, mt.Randomizable):
    """Stretches values about their mean by 1 - strength to 1 + strength, and shifts them by up to half the strength.

    Equal to MONAI's RandScaleIntensityFixedMean, then RandShiftIntensity, with the same numbers.
    """

    def __init__(self, keys: KeysCollection, strength: float) -> None:
        super().__init__(keys)
        self.strength, self.factor, self.offset = strength, 1.0, 0.0

    def randomize(self, data: Any = None) -> None:
        self.factor = 1 + self.R.uniform(-self.strength, self.strength)
        self.offset = self.R.uniform(-self.strength / 2, self.strength / 2)

    def __call__(self, data: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
        self.randomize()
        changed = dict(data)
        for key in self.keys:
            changed[key] = stretched(data[key], self.factor, self.offset)
        return changed


def stretched(image: Tensor, factor: float, offset: float) -> Tensor:
    """`image` stretched about its mean by `factor`, then shifted by `offset`."""
    return torch.add(image.mean() * (1 - factor) + offset, image, alpha=factor)
