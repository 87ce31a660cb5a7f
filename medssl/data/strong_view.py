"""The strong view of a patch: the weak one with brightness, contrast, gamma, blur and noise changed on top.

Own code: MONAI's smoothing takes what lies outside for 0, which is no air in images of [-1, 1].
"""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from monai import transforms as mt
from torch import Tensor

from medssl.data.jitter import stretched

BLUR_REACH = 3.0  # of the kernel, in standard deviations


@dataclass(frozen=True)
class StrongChanges:
    """How strongly intensities of images in [-1, 1] are changed; 0 switches a change off.

    Values are stretched about their mean by 1 - contrast to 1 + contrast and shifted by up to `brightness`; raised to
    the power of exp(-gamma) to exp(gamma) between the patch's lowest and highest value; with `blur_probability`
    blurred by a Gaussian of a standard deviation up to `blur_voxels`, the same along every axis; and get normal noise
    of a standard deviation up to `noise`. All numbers are drawn evenly.
    """

    contrast: float = 0.4
    brightness: float = 0.4
    gamma: float = 0.5
    blur_probability: float = 0.3
    blur_voxels: float = 1.0
    noise: float = 0.2


class RandStrongView(mt.Randomizable, mt.Transform):
    """Adds to a sample, as `key`, its `image` (C, H, W, D) with all of `changes`; other keys stay as they are."""

    def __init__(self, changes: StrongChanges, key: str = "strong") -> None:
        self.changes, self.key = changes, key
        self.factor, self.offset, self.power, self.deviation, self.noise, self.noise_seed = 1.0, 0.0, 1.0, 0.0, 0.0, 0

    def randomize(self, data: Any = None) -> None:
        changes, draw = self.changes, self.R.uniform
        self.factor = 1 + draw(-changes.contrast, changes.contrast)
        self.offset = draw(-changes.brightness, changes.brightness)
        self.power = math.exp(draw(-changes.gamma, changes.gamma))
        is_blurred, deviation = draw() < changes.blur_probability, draw(0, changes.blur_voxels)
        self.deviation = deviation if is_blurred else 0.0
        self.noise = draw(0, changes.noise)
        self.noise_seed = int(self.R.randint(2**31 - 1))

    def __call__(self, data: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
        self.randomize()
        strong = stretched(data["image"], self.factor, self.offset)
        strong = raised(strong, self.power)
        strong = blurred(strong, self.deviation)
        generator = torch.Generator().manual_seed(self.noise_seed)
        noise = torch.randn(strong.shape, generator=generator)
        return {**data, self.key: torch.add(strong, noise, alpha=self.noise)}


def raised(image: Tensor, power: float) -> Tensor:
    """`image` raised to `power` between its lowest value a and highest b: a + (b - a) ((x - a) / (b - a))^power."""
    low, high = image.aminmax()
    extent = high - low
    if extent == 0:
        return image
    return torch.add(low, ((image - low) / extent).pow_(power), alpha=float(extent))


def blurred(image: Tensor, deviation: float) -> Tensor:
    """`image` (C, *spatial) smoothed by a Gaussian of `deviation` voxels; outside lies the value at the border.

    The kernel ends after three deviations: below a sixth of a voxel nothing changes.
    """
    reach = int(BLUR_REACH * deviation + 0.5)
    if reach == 0:
        return image
    weights = torch.exp(-0.5 * (torch.arange(reach + 1) / deviation).square())
    shares = (weights / (2 * weights.sum() - weights[0])).tolist()
    for axis in range(1, image.ndim):
        image = _smoothed_along(image, axis, shares)
    return image


def _smoothed_along(image: Tensor, axis: int, weights: list[float]) -> Tensor:
    """weights: of a voxel itself and of its neighbours at distance 1, 2, ... on both sides."""
    length, reach = image.shape[axis], len(weights) - 1
    places = torch.arange(-reach, length + reach).clamp(0, length - 1)
    padded = image.index_select(axis, places)
    smooth = image * weights[0]
    for distance, weight in enumerate(weights[1:], start=1):
        smooth.add_(padded.narrow(axis, reach - distance, length), alpha=weight)
        smooth.add_(padded.narrow(axis, reach + distance, length), alpha=weight)
    return smooth
