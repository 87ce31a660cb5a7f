"""Signed distances of voxels from the boundaries of structures."""

import numpy as np
import torch
from scipy import ndimage
from torch import Tensor


def signed_distance_maps(labels: Tensor, num_classes: int) -> Tensor:
    """(B, num_classes - 1, *spatial) in [-1, 1]: how far a voxel is from the boundary of each structure.

    labels: (B, 1, *spatial), 0 is the background. Negative inside, positive outside, each side divided by its greatest
    distance in the patch; 0 on the boundary, the voxels of a structure with a neighbour outside. Distances are in
    voxels. A patch without the structure is 1 everywhere, one filled by it -1.
    """
    classes = labels.detach().squeeze(1).cpu().numpy()
    maps = [[_of_structure(patch == label) for label in range(1, num_classes)] for patch in classes]
    return torch.from_numpy(np.stack([np.stack(patch) for patch in maps])).to(labels.device)


def _of_structure(inside: np.ndarray) -> np.ndarray:
    """The map of one structure, float32."""
    if inside.all() or not inside.any():
        return np.full(inside.shape, -1 if inside.any() else 1, dtype=np.float32)
    depth = np.where(inside, ndimage.distance_transform_edt(inside) - 1, 0)  # 0 for a voxel at the boundary
    height = ndimage.distance_transform_edt(~inside)
    return (height / height.max() - depth / max(depth.max(), 1)).astype(np.float32)
