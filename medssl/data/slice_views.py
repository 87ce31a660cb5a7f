"""Views of the slices of scans: the same turn and crop of slice and label, then changes of grey that tell no class.

In plain torch, with the numbers that torchvision's transforms give from the same random state.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from medssl.data.grey_changes import blurred_or_jittered, up_to_three_changes
from medssl.data.pipeline import BACKGROUND

StrongKind = Literal["colour", "augseg"]
NO_LABEL = 255
LEAST_SCALE, MOST_SCALE = 0.8, 1.25


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

    def cropped(self) -> "RandomCrop":
        """From slice and label to a random cut of both."""
        height, width = self.patch[:2]
        return RandomCrop(height, width, self.degrees)

    def stronger(self) -> Callable[[Tensor], Tensor]:
        """From a slice to the same places in other greys."""
        return StrongerGreys(up_to_three_changes if self.strong == "augseg" else blurred_or_jittered)


@dataclass(frozen=True)
class RandomCrop:
    """Slice (3, H, W) and label (H, W) scaled, turned, flipped and cut to (height, width), both alike."""

    height: int
    width: int
    degrees: float

    def __call__(self, image: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
        factor = LEAST_SCALE + (MOST_SCALE - LEAST_SCALE) * torch.rand(()).item()
        size = [max(1, round(factor * side)) for side in image.shape[-2:]]
        image, label = resized(image, size), resized(label.unsqueeze(0), size, "nearest-exact")
        if torch.rand(1) < 0.5:
            angle = torch.empty(1).uniform_(-self.degrees, self.degrees).item()
            image, label = turned(image, angle, BACKGROUND), turned(label, angle, NO_LABEL, "nearest")
        if torch.rand(1) < 0.5:
            image, label = image.flip(-2), label.flip(-2)  # left and right are the first axis of a slice
        image, label = self._padded(image, BACKGROUND), self._padded(label, NO_LABEL)
        top, left = _chosen_start(image.shape[-2], self.height), _chosen_start(image.shape[-1], self.width)
        inside = (..., slice(top, top + self.height), slice(left, left + self.width))
        return image[inside], label[inside].squeeze(0)

    def _padded(self, image: Tensor, fill: float) -> Tensor:
        """On both sides what the image lacks to one crop, so that the image may lie anywhere in it."""
        above = max(0, self.height - image.shape[-2])
        beside = max(0, self.width - image.shape[-1])
        return F.pad(image, [beside, beside, above, above], value=fill) if above or beside else image


@dataclass(frozen=True)
class StrongerGreys:
    """A slice in [-1, 1] as bytes, which `change` is made for, and back."""

    change: Callable[[Tensor], Tensor]

    def __call__(self, image: Tensor) -> Tensor:
        greys = ((image + 1) * 127.5).round().clamp(0, 255).to(torch.uint8)
        return self.change(greys).float() / 127.5 - 1


def resized(image: Tensor, size: Sequence[int], mode: str = "bilinear") -> Tensor:
    """Image (C, H, W) on a grid of another size; "bilinear" averages over what a smaller pixel covers.

    mode "nearest-exact" is for labels: torch's "nearest" moves them by half a pixel.
    """
    if tuple(size) == tuple(image.shape[-2:]):
        return image
    if mode == "bilinear":
        return F.interpolate(image[None], tuple(size), mode=mode, align_corners=False, antialias=True)[0]
    return F.interpolate(image[None], tuple(size), mode=mode)[0]


def turned(image: Tensor, degrees: float, fill: float, mode: str = "bilinear") -> Tensor:
    """Image (C, H, W) turned about its middle, counter-clockwise; `fill` stands where it comes from outside."""
    degrees = degrees % 360
    if degrees == 0:
        return image.clone()
    values = image.float()
    known = torch.ones_like(values[:1])
    sampled = F.grid_sample(
        torch.cat([values, known])[None], _turned_places(image, degrees), mode, "zeros", align_corners=False
    )[0]
    values, known = sampled[:-1], sampled[-1:]
    if mode == "nearest":
        return torch.where(known < 0.5, torch.tensor(float(fill)), values).to(image.dtype)
    return (values - fill) * known + fill


def _turned_places(image: Tensor, degrees: float) -> Tensor:
    """Where each pixel of the turned image comes from, (1, H, W, 2), as column and row from -1 to 1."""
    height, width = image.shape[-2:]
    cos, sin = math.cos(math.radians(-degrees)), math.sin(math.radians(-degrees))
    back = torch.tensor([[cos, sin, 0.0], [-sin, cos, 0.0]]) / torch.tensor([[0.5 * width], [0.5 * height]])
    rows, columns = (torch.linspace((1.0 - n) * 0.5, (n - 1.0) * 0.5, n) for n in (height, width))
    row, column = torch.meshgrid(rows, columns, indexing="ij")
    places = torch.stack([column, row, torch.ones_like(row)], dim=-1)
    return places.view(1, height * width, 3).bmm(back.T[None]).view(1, height, width, 2)


def _chosen_start(length: int, wanted: int) -> int:
    """Where a piece of `wanted` pixels of a line begins, by chance; 0, and no chance, where it fits exactly."""
    return int(torch.randint(0, length - wanted + 1, size=())) if length > wanted else 0
