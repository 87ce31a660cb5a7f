"""The latent part of LRL: feature maps of slices to one vector a slice and back (thesis, tables of appendix A).

Maps are (batch, channel, height, width, depth), vectors (batch, depth, dimension): a slice keeps its place. Vectors are
computed in float32 in mixed precision, too: z scales with v.v, and float16 ends at 65504.
"""

import torch
from torch import Tensor, nn

from medssl.core.precision import without_autocast

KERNEL, STRIDE, PADDING = (3, 3, 1), (2, 2, 1), (1, 1, 0)


def halved(size: tuple[int, int]) -> tuple[int, int]:
    """Height and width after a convolution of stride 2 with padding."""
    return (size[0] + 1) // 2, (size[1] + 1) // 2


class ShrinkSlices(nn.Conv3d):
    """Halves height and width of every slice on its own."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels, channels, KERNEL, STRIDE, PADDING)


class FlattenSlices(nn.Module):
    """(B, C, h, w, D) to (B, D, C h w): a row for each slice."""

    def forward(self, maps: Tensor) -> Tensor:
        return maps.movedim(-1, 1).flatten(2)


class SliceToVector(nn.Module):
    """One vector of `dimension` numbers for every slice of (B, C, h, w, D): (B, D, dimension).

    `shrink` may be shared between two of these, as the released code does.
    """

    def __init__(self, channels: int, size: tuple[int, int], dimension: int, shrink: nn.Module | None = None) -> None:
        super().__init__()
        height, width = halved(size)
        self.shrink = ShrinkSlices(channels) if shrink is None else shrink
        self.flatten = FlattenSlices()
        self.linear = nn.Linear(channels * height * width, dimension)

    def forward(self, maps: Tensor) -> Tensor:
        rows = self.flatten(self.shrink(maps))
        with without_autocast(rows.device):
            return self.linear(rows.to(self.linear.weight.dtype))


class VectorToSlice(nn.Module):
    """The way back: (B, D, dimension) to maps (B, C, h, w, D)."""

    def __init__(self, channels: int, size: tuple[int, int], dimension: int) -> None:
        super().__init__()
        self.channels, self.size, self.small = channels, size, halved(size)
        self.linear = nn.Linear(dimension, channels * self.small[0] * self.small[1])
        self.grow = nn.ConvTranspose3d(channels, channels, KERNEL, STRIDE, PADDING)

    def unflatten(self, rows: Tensor) -> Tensor:
        """(B, D, C h w) to (B, C, h, w, D); the inverse of FlattenSlices."""
        return rows.unflatten(2, (self.channels, *self.small)).movedim(1, -1)

    def forward(self, vectors: Tensor) -> Tensor:
        # CPUs without native bfloat16 crash in this transposed convolution, too; it is small enough for float32
        with without_autocast(vectors.device):
            small = self.unflatten(self.linear(vectors.to(self.linear.weight.dtype)))
            return self.grow(small, output_size=[*self.size, small.shape[-1]])


def bounded(v: Tensor, bound: float | None) -> Tensor:
    """`v` with a squared length of at most `bound`^2 (each entry by tanh), or `v` itself if bound is None.

    Not in the thesis: an unbounded v lets the product KL go flat while the samples drown in noise.
    """
    return v if bound is None else bound * torch.tanh(v) / v.shape[-1] ** 0.5
