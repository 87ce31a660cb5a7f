"""Pseudo-labels without their islands: the largest connected component of every structure."""

import numpy as np
import torch
from scipy import ndimage
from torch import Tensor


def largest_components(labels: Tensor, connectivity: int | None = None) -> Tensor:
    """Labels (B, *spatial) with the largest component of each foreground class of each image; the rest becomes 0.

    labels: whole numbers, 0 is the background; type and device stay. connectivity: along how many axes at once
    neighbours may differ, from 1 (4 neighbours in 2-D, 6 in 3-D) to the number of spatial axes (8, 26), which is the
    default. Of components of equal size the one that comes first in memory stays.
    """
    axes = labels.ndim - 1
    neighbours = ndimage.generate_binary_structure(axes, axes if connectivity is None else connectivity)
    images = labels.detach().cpu().numpy()
    kept = np.stack([_largest_of_classes(image, neighbours) for image in images]) if len(images) else images
    return torch.from_numpy(kept).to(labels)


def _largest_of_classes(image: np.ndarray, neighbours: np.ndarray) -> np.ndarray:
    kept = np.zeros_like(image)
    for label in np.unique(image[image != 0]):
        components, _ = ndimage.label(image == label, neighbours)
        sizes = np.bincount(components.ravel())
        kept[components == 1 + sizes[1:].argmax()] = label
    return kept
