"""RandAugment and cutout as the code of semi-supervised classification has them (TorchSSL, USB, NP-Match).

Every operation has a strength drawn evenly from its range, whatever the magnitude; torchvision's RandAugment has one
strength for all of them, and a milder one.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional

LARGEST_CUT = 0.5  # share of the picture's side
CUT_COLOUR = (125, 123, 114)  # the mean of CIFAR-10


class UniformRandAugment(v2.Transform):
    """A picture (3, H, W) uint8 after `operations` of the 14 operations, each drawn by itself, with its strength."""

    def __init__(self, operations: int = 3) -> None:
        super().__init__()
        self.operations = operations

    def forward(self, *inputs: Any) -> Any:
        image = inputs[0]
        for place in torch.randint(len(OPERATIONS), (self.operations,)).tolist():
            least, most, change = OPERATIONS[place]
            image = change(image, least + (most - least) * torch.rand(()).item())
        return image


class SquareCutout(v2.Transform):
    """A picture (3, H, W) uint8 without a square: its side is drawn evenly from 0 to half of the picture's width.

    Its middle may be anywhere in the picture; what would lie before the first row or column is moved inside, what
    would lie behind the last is cut off.
    """

    def forward(self, *inputs: Any) -> Any:
        image = inputs[0].clone()
        height, width = image.shape[-2:]
        side = LARGEST_CUT * width * torch.rand(()).item()
        left, top = (int(max(0.0, whole * torch.rand(()).item() - side / 2)) for whole in (width, height))
        colour = torch.tensor(CUT_COLOUR, dtype=image.dtype)[:, None, None]
        image[..., top : top + round(side), left : left + round(side)] = colour
        return image


def _sheared(image: Tensor, across: float, down: float) -> Tensor:
    """Rows are moved along by `across` pixels a row, columns by `down` pixels a column, from the upper left corner."""
    degrees = [math.degrees(math.atan(across)), math.degrees(math.atan(down))]
    return functional.affine(image, angle=0.0, translate=[0, 0], scale=1.0, shear=degrees, center=[0.0, 0.0])


def _moved(image: Tensor, across: float, down: float) -> Tensor:
    """Moved by these shares of its width and height; black comes in."""
    height, width = image.shape[-2:]
    pixels = [across * width, down * height]
    return functional.affine(image, angle=0.0, translate=pixels, scale=1.0, shear=[0.0, 0.0])


def _solarised(image: Tensor, threshold: float) -> Tensor:
    """Values from the threshold on inverted; above 255 there are none."""
    return image if threshold > 255 else functional.solarize(image, threshold)


Change = Callable[[Tensor, float], Tensor]
# least and most strength of each operation; brightness, colour, contrast and sharpness below 1 take some of it away
OPERATIONS: list[tuple[float, float, Change]] = [
    (0.0, 1.0, lambda image, _: functional.autocontrast(image)),
    (0.05, 0.95, functional.adjust_brightness),
    (0.05, 0.95, functional.adjust_saturation),
    (0.05, 0.95, functional.adjust_contrast),
    (0.0, 1.0, lambda image, _: functional.equalize(image)),
    (0.0, 1.0, lambda image, _: image),
    (4.0, 8.0, lambda image, bits: functional.posterize(image, int(bits))),
    (-30.0, 30.0, functional.rotate),
    (0.05, 0.95, functional.adjust_sharpness),
    (-0.3, 0.3, lambda image, slope: _sheared(image, slope, 0.0)),
    (-0.3, 0.3, lambda image, slope: _sheared(image, 0.0, slope)),
    (0.0, 256.0, _solarised),
    (-0.3, 0.3, lambda image, share: _moved(image, share, 0.0)),
    (-0.3, 0.3, lambda image, share: _moved(image, 0.0, share)),
]
