"""CutMix: boxes of one image pasted into another, with all that is known about their pixels."""

from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from medssl.methods.parts import pasted_alike, random_boxes
from natural_image_ext.networks.class_banks import IGNORED


class Mixer(Protocol):
    """Maps what was taught, and the batch, to what the student sees."""

    def __call__(self, taught: Any, batch: dict[str, Any]) -> Any: ...


class CutMix:
    """Every image gets `boxes` of the one before it; where they do not overlap they cover `least` to `most` of it."""

    def __init__(self, least: float = 0.25, most: float = 0.5, boxes: int = 1) -> None:
        self.least, self.most, self.boxes = least, most, boxes

    def __call__(self, taught: Any, batch: dict[str, Any]) -> Any:
        masks = self._masks(taught)
        return mixed(taught, (taught.images.roll(1, 0), taught.probs.roll(1, 0), taught.labels.roll(1, 0)), masks)

    def _masks(self, taught: Any) -> Tensor:
        images = taught.images
        return random_boxes(len(images), images.shape[2:], self.least, self.most, images.device, self.boxes)


class AdaptiveCutMix(CutMix):
    """AugSeg's: unsure images are first given a box of a labelled image with its label, then all are mixed.

    The less confident the teacher is of an image, the more likely it gets one.
    """

    def __call__(self, taught: Any, batch: dict[str, Any]) -> Any:
        number = len(taught.images)
        sure = taught.confidence.mean((-2, -1))
        unsure = torch.rand(number, device=sure.device) > sure
        masks = self._masks(taught) & unsure[:, None, None]
        places = torch.randint(0, len(batch["image"]), (number,), device=sure.device)
        images, labels = batch["image"][places], batch["label"][places]
        known = F.one_hot(labels.clamp_max(taught.probs.shape[1] - 1), taught.probs.shape[1]).movedim(-1, 1)
        masks = masks & (labels != IGNORED)
        return super().__call__(mixed(taught, (images, known.to(taught.probs.dtype), labels), masks), batch)


def mixed(taught: Any, others: tuple[Tensor, Tensor, Tensor], masks: Tensor) -> Any:
    """`taught` with images, probabilities and labels of `others` where masks (B, H, W) are true."""
    return type(taught)(*pasted_alike((taught.images, taught.probs, taught.labels), others, masks))
