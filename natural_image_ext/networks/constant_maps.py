"""Convolution of maps that are constant over space: a product for each kind of border instead of one a pixel."""

import torch
from torch import Tensor


def convolve_constant(vectors: Tensor, weight: Tensor, size: tuple[int, ...]) -> Tensor:
    """What a convolution with `weight` (O, I, 3, ...) and zero padding 1 makes of maps that hold `vectors` everywhere.

    vectors (N, I), each stands for a map of `size` voxels; returns (N, O, *size). Away from the border every voxel sees
    all taps of the kernel and so the same value; at a border some taps lie outside: 3 kinds of places a dimension.
    """
    lines = [_kinds_of_places(length, weight) for length in size]
    sums = weight
    for kinds, _ in lines:  # taps that are seen are summed: each dimension of 3 taps becomes one of kinds, at the end
        sums = torch.tensordot(sums, kinds.to(sums.dtype), dims=([2], [1]))
    maps = torch.einsum("ni,oi...->no...", vectors, sums)
    for dimension, (_, kind_of_place) in enumerate(lines, start=2):
        maps = maps.index_select(dimension, kind_of_place)
    return maps


def _kinds_of_places(length: int, weight: Tensor) -> tuple[Tensor, Tensor]:
    """The kinds of places on a line, (K, 3): which of the 3 taps lie inside; and the kind of each place, (length,)."""
    places = torch.arange(length, device=weight.device)
    inside = torch.stack([places > 0, places >= 0, places < length - 1], dim=1)
    return torch.unique(inside, dim=0, return_inverse=True)
