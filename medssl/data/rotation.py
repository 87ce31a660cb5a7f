"""Random rotation of volumes in the plane of their slices.

All slices are sampled at the same places: where and how much of a pixel's neighbours is needed is computed once, and
a column of voxels, which lies together in memory, is moved at a time. A twentieth of a 3-D rotation's work is left.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import torch
from monai import transforms as mt
from monai.config import KeysCollection
from torch import Tensor
from torch.nn import functional as F


def rotated_in_plane(volume: Tensor, radians: float, mode: str = "bilinear") -> Tensor:
    """`volume` (C, H, W, D) rotated from W towards H about the middle of its slices; H, W at least 2.

    Type and size stay. mode: "bilinear" (of floats) or "nearest". What comes from outside has the value at the border.
    Equal to MONAI's Rotate with angle (0, 0, radians) and padding mode "border".
    """
    height, width = volume.shape[1:3]
    rows, columns = _sampled_places(height, width, radians, volume.device)
    columns_of_voxels = volume.flatten(1, 2)  # (C, H W, D)
    if mode == "nearest":
        places = (rows.round() * width + columns.round()).long()
        return columns_of_voxels[:, places].unflatten(1, (height, width))
    upper, left = rows.floor().clamp_max(height - 2), columns.floor().clamp_max(width - 2)
    down, right = rows - upper, columns - left
    first = (upper * width + left).long()
    corners = torch.stack([first, first + 1, first + width, first + width + 1], dim=-1)
    shares = torch.stack([(1 - down) * (1 - right), (1 - down) * right, down * (1 - right), down * right], dim=-1)
    turned = [F.embedding_bag(corners, channel, mode="sum", per_sample_weights=shares) for channel in columns_of_voxels]
    return torch.stack(turned).unflatten(1, (height, width))


def _sampled_places(height: int, width: int, radians: float, device: torch.device) -> tuple[Tensor, Tensor]:
    """Row and column, from 0 and not whole, where each of the H W pixels of the rotated slice comes from."""
    cos, sin = math.cos(radians), math.sin(radians)
    row, column = torch.meshgrid(
        torch.arange(height, device=device) - (height - 1) / 2,
        torch.arange(width, device=device) - (width - 1) / 2,
        indexing="ij",
    )
    rows = cos * row - sin * column + (height - 1) / 2
    columns = sin * row + cos * column + (width - 1) / 2
    return rows.clamp(0, height - 1).flatten(), columns.clamp(0, width - 1).flatten()


class RandRotateInPlaned(mt.MapTransform, mt.RandomizableTransform):
    """With probability `prob`, rotates all of `keys` by the same angle between -degrees and degrees.

    modes: of each key, as in `rotated_in_plane`.
    """

    def __init__(self, keys: KeysCollection, modes: Sequence[str], degrees: float, prob: float = 0.5) -> None:
        mt.MapTransform.__init__(self, keys)
        mt.RandomizableTransform.__init__(self, prob)
        self.modes, self.degrees, self.radians = tuple(modes), degrees, 0.0

    def randomize(self, data: Any = None) -> None:
        super().randomize(data)
        self.radians = math.radians(self.R.uniform(-self.degrees, self.degrees))

    def __call__(self, data: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
        self.randomize()
        turned = dict(data)
        if self._do_transform:
            for key, mode in zip(self.keys, self.modes, strict=True):
                turned[key] = rotated_in_plane(data[key], self.radians, mode)
        return turned
