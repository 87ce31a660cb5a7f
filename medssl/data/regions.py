"""Where in the slices the region lies: found from the scan alone, or from its label.

Both are mask functions for MONAI's `CropForegroundd`, which crops to the mask's bounding box and can be inverted. They
are plain values, so that a cache on disk knows them apart.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class BodyRegion:
    """From a scan (1, H, W, D) to the mask of the region of `size` (height, width) around its centre of brightness."""

    size: tuple[int, int]

    def __call__(self, image: Tensor) -> Tensor:
        weight = image[0].double() - float(image.min())
        if not weight.any():  # an even scan has no centre but its own
            return _box_mask(image, _middle_of(image), self.size, slice(None))
        total = weight.sum()
        rows = (weight.sum((1, 2)) * torch.arange(weight.shape[0])).sum() / total
        columns = (weight.sum((0, 2)) * torch.arange(weight.shape[1])).sum() / total
        return _box_mask(image, (float(rows) + 0.5, float(columns) + 0.5), self.size, slice(None))


@dataclass(frozen=True)
class LabelRegion:
    """Like `BodyRegion`, from a label: around its bounding box.

    With a slice_margin, slices further from the label are cut off too: that is what `paper_crop` asks for.
    """

    size: tuple[int, int]
    slice_margin: int | None = None

    def __call__(self, label: Tensor) -> Tensor:
        found = (label[0] > 0).nonzero()
        if len(found) == 0:
            return _box_mask(label, _middle_of(label), self.size, slice(None))
        low, high = found.min(0).values.tolist(), found.max(0).values.tolist()
        centre = ((low[0] + high[0] + 1) / 2, (low[1] + high[1] + 1) / 2)
        if self.slice_margin is None:
            return _box_mask(label, centre, self.size, slice(None))
        depth = slice(max(low[2] - self.slice_margin, 0), high[2] + 1 + self.slice_margin)
        return _box_mask(label, centre, self.size, depth)


def _middle_of(volume: Tensor) -> tuple[float, float]:
    return volume.shape[1] / 2, volume.shape[2] / 2


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
