"""Boxes of one image pasted into another, with all that is known about their pixels or voxels."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor


def random_boxes(
    number: int, size: Sequence[int], least: float, most: float, device: torch.device, boxes: int = 1
) -> Tensor:
    """Masks (number, *size) with one box each, its share of the volume between `least` and `most`, of any shape.

    boxes: how many share that volume evenly; where they overlap, less is covered. All but the last side are drawn,
    each at least 0.5^(1 / (axes - 1)) of the image's (0.5 of it in 2-D) so that together they leave room for a share
    of up to one half; the last one follows from the volume.
    """
    masks = torch.zeros(number, *size, dtype=torch.bool)
    for mask in masks:
        volume = (least + (most - least) * torch.rand(()).item()) * math.prod(size) / boxes
        for _ in range(boxes):
            sides = _random_sides(size, volume, boxes)
            starts = [int(torch.randint(0, whole - side + 1, ())) for whole, side in zip(size, sides, strict=True)]
            mask[_box_at(starts, sides)] = True
    return masks.to(device)


def boxes_of_sides(
    number: int, size: Sequence[int], share: float, device: torch.device, centred: bool = False
) -> Tensor:
    """Masks (number, *size) with one box each of `share` (0 to 1) of every side, at a random place or in the middle.

    A side of n has round(share n), at least 1. 2/3 is what bidirectional copy-paste takes.
    """
    if not 0 < share <= 1:
        raise ValueError(f"share {share}: a box has a share of each side above 0 and at most 1")
    sides = [max(1, round(share * whole)) for whole in size]
    masks = torch.zeros(number, *size, dtype=torch.bool)
    for mask in masks:
        starts = [
            (whole - side) // 2 if centred else int(torch.randint(0, whole - side + 1, ()))
            for whole, side in zip(size, sides, strict=True)
        ]
        mask[_box_at(starts, sides)] = True
    return masks.to(device)


def pasted(own: Tensor, other: Tensor, masks: Tensor) -> Tensor:
    """`own` with the values of `other` where masks (B, *spatial) are true.

    Both are (B, *spatial), as labels are, or (B, C, *spatial), as images and probabilities are.
    """
    return torch.where(masks if own.ndim == masks.ndim else masks.unsqueeze(1), other, own)


def pasted_alike(own: Sequence[Tensor], other: Sequence[Tensor], masks: Tensor) -> list[Tensor]:
    """`pasted` for images, labels and whatever else is known, all by the same masks."""
    return [pasted(mine, theirs, masks) for mine, theirs in zip(own, other, strict=True)]


def _random_sides(size: Sequence[int], volume: float, boxes: int) -> list[int]:
    """The sides of a box of `volume`, one of `boxes` in an image of `size`."""
    axes = len(size)
    smallest = 0.5 ** (1 / max(1, axes - 1))
    sides = [
        max(1, round(whole * (smallest + (1 - smallest) * torch.rand(()).item()) / boxes ** (1 / axes)))
        for whole in size[:-1]
    ]
    return [*sides, min(size[-1], math.ceil(volume / math.prod(sides)))]


def _box_at(starts: Sequence[int], sides: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(start, start + side) for start, side in zip(starts, sides, strict=True))
