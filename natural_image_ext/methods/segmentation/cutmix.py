"""CutMix: boxes of one image pasted into another, with all that is known about their pixels."""

import math
from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from medssl.methods.parts import pasted_alike, random_boxes
from medssl.uncertainty.maps import entropy_nats
from natural_image_ext.networks.class_banks import IGNORED


class Mixer(Protocol):
    """Maps what was taught, and the batch, to what the student sees."""

    def __call__(self, taught: Any, batch: dict[str, Any]) -> Any: ...


class CutMix:
    """Every image gets `boxes` of the one before it; where they do not overlap they cover `least` to `most` of it."""

    def __init__(self, least: float = 0.25, most: float = 0.5, boxes: int = 1) -> None:
        self.least, self.most, self.boxes = least, most, boxes

    def __call__(self, taught: Any, batch: dict[str, Any]) -> Any:
        images = taught.images
        masks = random_boxes(len(images), images.shape[2:], self.least, self.most, images.device, self.boxes)
        return mixed(taught, (images.roll(1, 0), taught.probs.roll(1, 0), taught.labels.roll(1, 0)), masks)


class BetaCutMix:
    """Every image gets a box of another one of the batch, as PS-MT and AugSeg paste it.

    `beta` are the parameters of the Beta distribution of the share that an image keeps; see `beta_boxes`.
    """

    def __init__(self, beta: tuple[float, float] = (4.0, 4.0)) -> None:
        self.beta = beta

    def __call__(self, taught: Any, batch: dict[str, Any]) -> Any:
        return self.pasted(taught, taught, torch.randperm(len(taught.images)))

    def pasted(self, taught: Any, source: Any, partners: Tensor) -> Any:
        """`taught`, each with a box of the image of `source` that is its partner (B,)."""
        images = taught.images
        places = partners.to(images.device)
        masks = beta_boxes(len(images), images.shape[2:], self.beta, images.device)
        return mixed(taught, (source.images[places], source.probs[places], source.labels[places]), masks)


class AdaptiveCutMix(BetaCutMix):
    """AugSeg's: unsure images are given a box of a labelled image with its label, and boxes of that are pasted.

    An image is sure of itself with the probability (1 - H / ln C) p_max, mean over its pixels, H being the entropy and
    p_max the highest probability of C classes; else it gets a labelled box, which keeps `labelled_beta` of it. Every
    image then gets a box of another one after that: a labelled box is seen where it lies in that box. Pixels of a
    labelled image that have no label are not pasted.
    """

    def __init__(self, beta: tuple[float, float] = (4.0, 4.0), labelled_beta: tuple[float, float] = (8.0, 2.0)) -> None:
        super().__init__(beta)
        self.labelled_beta = labelled_beta

    def __call__(self, taught: Any, batch: dict[str, Any]) -> Any:
        partners = torch.randperm(len(taught.images))
        return self.pasted(taught, self.with_labelled_boxes(taught, batch, partners), partners)

    def with_labelled_boxes(self, taught: Any, batch: dict[str, Any], partners: Tensor) -> Any:
        """`taught`, its unsure images with a box of the labelled image that is their partner (B,)."""
        number, classes = taught.probs.shape[:2]
        device = taught.images.device
        unsure = torch.rand(number).to(device) > sureness(taught.probs)
        places = partners.to(device) % len(batch["image"])
        images, labels = batch["image"][places], batch["label"][places]
        known = F.one_hot(labels.clamp_max(classes - 1), classes).movedim(-1, 1).to(taught.probs.dtype)
        boxes = beta_boxes(number, images.shape[2:], self.labelled_beta, device)
        masks = boxes & unsure[:, None, None] & (labels != IGNORED)
        return mixed(taught, (images, known, labels), masks)


def sureness(probs: Tensor) -> Tensor:
    """How sure probabilities (B, C, H, W) are of each image, (B,) in [0, 1]: AugSeg's (1 - H / ln C) p_max, mean."""
    share = entropy_nats(probs, dim=1) / math.log(probs.shape[1])
    return ((1 - share) * probs.amax(1)).mean((-2, -1))


def beta_boxes(number: int, size: Sequence[int], beta: tuple[float, float], device: torch.device) -> Tensor:
    """Masks (number, *size) with one box each, all of the same size, in the shape of the image.

    A box takes 1 - k of the image, k drawn from the Beta distribution, once for all. Its middle is anywhere but in the
    first eighth of a side; what would lie outside is cut off.
    """
    kept = torch.distributions.Beta(*beta).sample().item()
    masks = torch.zeros(number, *size, dtype=torch.bool)
    for mask in masks:
        inside = []
        for length in size:
            half = int(length * math.sqrt(1 - kept)) // 2
            middle = int(torch.randint(length // 8, length, ()))
            inside.append(slice(max(0, middle - half), min(length, middle + half)))
        mask[tuple(inside)] = True
    return masks.to(device)


def mixed(taught: Any, others: tuple[Tensor, Tensor, Tensor], masks: Tensor) -> Any:
    """`taught` with images, probabilities and labels of `others` where masks (B, H, W) are true."""
    return type(taught)(*pasted_alike((taught.images, taught.probs, taught.labels), others, masks))
