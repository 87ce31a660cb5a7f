"""Where in the slices the region lies: found from the scan alone, or, only when asked for, from its label.

Both are mask functions for MONAI's `CropForegroundd`, which crops to the mask's bounding box and can be inverted.
"""

from collections.abc import Callable

import torch
from torch import Tensor


def _box_mask(like: Tensor, centre: tuple[float, float], size: tuple[int, int], depth: slice) -> Tensor:
    """A boolean (1, H, W, D) mask that is true in the box of `size` around `centre`, shifted to lie inside."""
    mask = torch.zeros((1, *like.shape[1:]), dtype=torch.bool)
    spans = []
    for middle, wanted, available in zip(centre, size, like.shape[1:3], strict=True):
        length = min(wanted, available)
        start = min(max(round(middle - length / 2), 0), available - length)
        spans.append(slice(start, start + length))
    mask[:, spans[0], spans[1], depth] = True
    return mask


def body_region(size: tuple[int, int]) -> Callable[[Tensor], Tensor]:
    """A function from a scan (1, H, W, D) to the mask of the region of `size` around its centre of brightness."""

    def select(image: Tensor) -> Tensor:
        weight = image[0].float() - image.min()
        total = weight.sum().clamp_min(1e-6)
        rows = (weight.sum((1, 2)) * torch.arange(weight.shape[0])).sum() / total
        columns = (weight.sum((0, 2)) * torch.arange(weight.shape[1])).sum() / total
        return _box_mask(image, (float(rows) + 0.5, float(columns) + 0.5), size, slice(None))

    return select


def label_region(size: tuple[int, int], slice_margin: int = 8) -> Callable[[Tensor], Tensor]:
    """Like `body_region`, from a label: around its bounding box, slices without label cut off but for a margin.

    This is what `paper_crop` asks for. It lets the ground truth decide what the network sees.
    """

    def select(label: Tensor) -> Tensor:
        found = (label[0] > 0).nonzero()
        if len(found) == 0:
            return _box_mask(label, (label.shape[1] / 2, label.shape[2] / 2), size, slice(None))
        low, high = found.min(0).values.tolist(), found.max(0).values.tolist()
        centre = ((low[0] + high[0] + 1) / 2, (low[1] + high[1] + 1) / 2)
        depth = slice(max(low[2] - slice_margin, 0), high[2] + 1 + slice_margin)
        return _box_mask(label, centre, size, depth)

    return select
