"""Views of the slices of scans: the same turn and crop of slice and label, then changes of grey that tell no class."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

from medssl.data.pipeline import BACKGROUND
from natural_image_ext.data.scene_views import GREY_CHANGES, RandomScale, StrongKind, UpToThree
from natural_image_ext.data.scenes import VOID


@dataclass(frozen=True)
class SliceViews:
    """The augmentations of slices (3, H, W) in [-1, 1] and their labels (H, W).

    cropped: scaled by 0.8 to 1.25, turned by up to `degrees`, flipped left to right, cut to the first two sides of
    `patch`, slice and label alike; what was outside has the value of air and no label (255). strong: of the cropped
    slice, "colour" changes brightness and contrast and blurs, "augseg" does up to three of seven things.
    """

    patch: Sequence[int]
    strong: StrongKind = "colour"
    degrees: float = 10.0

    def cropped(self) -> v2.Transform:
        fill = {tv_tensors.Image: BACKGROUND, tv_tensors.Mask: VOID}
        turn = v2.RandomRotation(self.degrees, v2.InterpolationMode.BILINEAR, fill=fill)
        cut = v2.RandomCrop(list(self.patch[:2]), pad_if_needed=True, fill=fill)
        scale = RandomScale(0.8, 1.25, v2.InterpolationMode.NEAREST_EXACT)  # the other one moves labels by half a pixel
        # left and right are the first axis of a slice
        return v2.Compose([scale, v2.RandomApply([turn], p=0.5), v2.RandomVerticalFlip(), cut])

    def stronger(self) -> v2.Transform:
        if self.strong == "augseg":
            changes: list[v2.Transform] = [UpToThree(GREY_CHANGES)]
        else:
            jitter = v2.RandomApply([v2.ColorJitter(brightness=0.5, contrast=0.5)], p=0.8)
            changes = [jitter, v2.RandomApply([v2.GaussianBlur(5, (0.1, 2.0))], p=0.5)]
        return v2.Compose([v2.Lambda(_to_bytes), *changes, v2.Lambda(_from_bytes)])


def _to_bytes(image: Tensor) -> Tensor:
    """Values of [-1, 1] as 0 to 255, which changes of grey are made for."""
    return ((image + 1) * 127.5).round().clamp(0, 255).to(torch.uint8)


def _from_bytes(image: Tensor) -> Tensor:
    return image.float() / 127.5 - 1
