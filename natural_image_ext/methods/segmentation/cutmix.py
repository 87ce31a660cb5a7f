"""CutMix: boxes of one image pasted into another, with all that is known about their pixels."""

import math
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from natural_image_ext.networks.class_banks import IGNORED


class Mixer(Protocol):
    """Maps what was taught, and the batch, to what the student sees."""

    def __call__(self, taught: Any, batch: dict[str, Any]) -> Any: ...


class CutMix:
    """Every image gets a box of the one before it; the box covers `least` to `most` of the image."""

    def __init__(self, least: float = 0.25, most: float = 0.5) -> None:
        self.least, self.most = least, most

    def __call__(self, taught: Any, batch: dict[str, Any]) -> Any:
        masks = random_boxes(len(taught.images), taught.images.shape[2:], self.least, self.most, taught.images.device)
        return pasted(taught, (taught.images.roll(1, 0), taught.probs.roll(1, 0), taught.labels.roll(1, 0)), masks)


class AdaptiveCutMix(CutMix):
    """AugSeg's: unsure images are first given a box of a labelled image with its label, then all are mixed.

    The less confident the teacher is of an image, the more likely it gets one.
    """

    def __call__(self, taught: Any, batch: dict[str, Any]) -> Any:
        number = len(taught.images)
        sure = taught.confidence.mean((-2, -1))
        unsure = torch.rand(number, device=sure.device) > sure
        masks = (
            random_boxes(number, taught.images.shape[2:], self.least, self.most, sure.device) & unsure[:, None, None]
        )
        places = torch.randint(0, len(batch["image"]), (number,), device=sure.device)
        images, labels = batch["image"][places], batch["label"][places]
        known = F.one_hot(labels.clamp_max(taught.probs.shape[1] - 1), taught.probs.shape[1]).movedim(-1, 1)
        masks = masks & (labels != IGNORED)
        return super().__call__(pasted(taught, (images, known.to(taught.probs.dtype), labels), masks), batch)


def pasted(taught: Any, others: tuple[Tensor, Tensor, Tensor], masks: Tensor) -> Any:
    """`taught` with images, probabilities and labels of `others` where masks (B, H, W) are true."""
    images, probs, labels = others
    wide = masks.unsqueeze(1)
    return type(taught)(
        torch.where(wide, images, taught.images),
        torch.where(wide, probs, taught.probs),
        torch.where(masks, labels, taught.labels),
    )


def random_boxes(
    number: int, size: tuple[int, ...] | torch.Size, least: float, most: float, device: torch.device
) -> Tensor:
    """Masks (number, H, W) with one box each, its share of the area between `least` and `most`, of any shape."""
    height, width = size
    masks = torch.zeros(number, height, width, dtype=torch.bool)
    for mask in masks:
        area = (least + (most - least) * torch.rand(()).item()) * height * width
        high = round(height * (0.5 + 0.5 * torch.rand(()).item()))
        wide = min(width, math.ceil(area / high))
        top = int(torch.randint(0, height - high + 1, ()))
        left = int(torch.randint(0, width - wide + 1, ()))
        mask[top : top + high, left : left + wide] = True
    return masks.to(device)
