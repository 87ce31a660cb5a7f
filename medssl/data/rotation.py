"""Random rotation of volumes in the plane of their slices.

The slices are the channels of one 2-D image: they share one grid, and a twentieth of a 3-D rotation's work is left.
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
    """`volume` (C, H, W, D) rotated from W towards H about the middle of its slices; type and size stay.

    mode: "bilinear" or "nearest". What comes from outside has the value at the border. Equal to MONAI's Rotate with
    angle (0, 0, radians) and padding mode "border".
    """
    height, width = volume.shape[1:3]
    cos, sin = math.cos(radians), math.sin(radians)
    turn = torch.tensor([[[cos, sin * height / width, 0.0], [-sin * width / height, cos, 0.0]]], device=volume.device)
    grid = F.affine_grid(turn, [1, 1, height, width], align_corners=False)
    slices = volume.movedim(3, 1).flatten(0, 1).unsqueeze(0).float().contiguous()
    turned = F.grid_sample(slices, grid, mode, padding_mode="border", align_corners=False)
    return turned.to(volume.dtype)[0].unflatten(0, (volume.shape[0], -1)).movedim(1, 3)


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
