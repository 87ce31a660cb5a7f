"""Building blocks shared by the depth-preserving 3-D networks: tensors are (batch, channel, height, width, depth)."""

import itertools

import torch
from torch import Tensor, nn
from torch.nn import functional as F

POOL = (2, 2, 1)  # height and width are halved, the slices stay slices


class DoubleConv(nn.Sequential):
    """Two times convolution 3x3x3, instance norm, ReLU: `in_channels` to `mid_channels` to `out_channels`."""

    def __init__(self, in_channels: int, mid_channels: int, out_channels: int) -> None:
        super().__init__(
            nn.Conv3d(in_channels, mid_channels, 3, padding=1),
            nn.InstanceNorm3d(mid_channels),
            nn.ReLU(inplace=True),
            nn.Conv3d(mid_channels, out_channels, 3, padding=1),
            nn.InstanceNorm3d(out_channels),
            nn.ReLU(inplace=True),
        )


class Encoder(nn.Module):
    """Features of every resolution, finest first; depth is kept.

    The first block maps `in_channels` to `widths[0]`, each later one pools in-plane and widens: in its first
    convolution if `widen_first`, else in its second.
    """

    def __init__(self, in_channels: int, widths: tuple[int, ...], widen_first: bool = False) -> None:
        super().__init__()
        first = DoubleConv(in_channels, widths[0], widths[0])
        deeper = [DoubleConv(a, b if widen_first else a, b) for a, b in itertools.pairwise(widths)]
        self.blocks = nn.ModuleList([first, *deeper])
        self.pool = nn.MaxPool3d(POOL, ceil_mode=True)  # odd sizes keep their last row and column

    def forward(self, x: Tensor) -> list[Tensor]:
        features: list[Tensor] = []
        for level, block in enumerate(self.blocks):  # in a form that TorchScript exports
            x = block(x if level == 0 else self.pool(x))
            features.append(x)
        return features


class Decoder(nn.Module):
    """From the coarsest map back to full resolution: upsampled, joined with the encoder's features, convolved.

    `bottom_channels` is the width of the coarsest map, `widths` those of the encoder, finest first. Returns `widths[0]`
    channels. `dropout` drops whole channels of every block's input. Without `skips` the encoder's features give only
    the sizes: all that comes out has passed the coarsest map. `masks` (one (batch, channels) for each block, see
    `dropout_mask`) take the place of what dropout would draw.
    """

    def __init__(self, bottom_channels: int, widths: tuple[int, ...], dropout: float = 0.0, skips: bool = True) -> None:
        super().__init__()
        self.skips = skips
        finer = widths[-2::-1]
        below = (bottom_channels, *finer[:-1])
        self.blocks = nn.ModuleList(
            DoubleConv(coarse + fine * skips, fine, fine) for coarse, fine in zip(below, finer, strict=True)
        )
        self.dropout = nn.Dropout3d(dropout)

    def forward(self, bottom: Tensor, features: list[Tensor], masks: list[Tensor] | None = None) -> Tensor:
        x = bottom
        for level, block in enumerate(self.blocks):  # in a form that TorchScript exports
            skip = features[-2 - level]
            x = upsample_to(x, skip)
            x = torch.cat([x, skip], dim=1) if self.skips else x
            x = block(self.dropout(x) if masks is None else x * masks[level][:, :, None, None, None])
        return x


def at_least_two(x: Tensor) -> Tensor:
    """A batch of one as two of the same: alone it falls off the CPU's fast 3-D convolutions and takes longer."""
    return x.expand(2, *x.shape[1:]) if len(x) == 1 and not x.is_cuda else x


def upsample_to(x: Tensor, reference: Tensor) -> Tensor:
    """`x` interpolated trilinearly (corners aligned) to the spatial size of `reference`."""
    return F.interpolate(x, size=reference.shape[2:], mode="trilinear", align_corners=True)


def initialise(network: nn.Module) -> None:
    """Kaiming-normal weights (fan-in) and zero biases for every 3-D convolution of `network`."""
    for module in network.modules():
        if isinstance(module, nn.Conv3d):
            nn.init.kaiming_normal_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
