"""A decoder pass with channel dropout that leaves out what is dropped: the same numbers, a third less work.

Dropped input channels of a block take no part in its first convolution, so they are not gathered, and neither are their
weights; the block before them need not have computed them. Instance norm is by channel, so the rest does not notice.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from medssl.networks.blocks import Decoder, DoubleConv, upsample_to


def decode_kept(decoder: Decoder, features: list[Tensor], masks: list[Tensor]) -> Tensor:
    """What `decoder(features[-1], features, masks)` gives for one window, from the channels that `masks` keep.

    features: (1, C, ...), finest first; masks: one for each block, (C,) or (1, C), 0 for a dropped channel. The decoder
    has skips.
    """
    flat = [mask.flatten() for mask in masks]
    skips = features[-2::-1]
    from_below = [mask[: len(mask) - skip.shape[1]] for mask, skip in zip(flat, skips, strict=True)]
    wanted = [_kept(mask) for mask in from_below[1:]]  # of each block's outputs, those that the next one keeps
    x = features[-1][:, _kept(from_below[0])]
    for level, (block, skip, mask) in enumerate(zip(decoder.blocks, skips, flat, strict=True)):
        beside = skip[:, _kept(mask[len(from_below[level]) :])]
        joined = torch.cat([upsample_to(x, skip), beside], dim=1) if x.shape[1] else beside
        assert isinstance(block, DoubleConv)  # noqa: S101  (a ModuleList does not say of what)
        x = _kept_block(block, joined, mask, wanted[level] if level < len(wanted) else slice(None))
    return x


def conv3d(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Convolution 3x3x3 with padding 1; on the CPU always by oneDNN, which torch leaves out for one small window."""
    if x.device.type == "cpu" and x.dtype == torch.float32 and torch.backends.mkldnn.is_available():
        return torch.mkldnn_convolution(x, weight, bias, [1] * 3, [1] * 3, [1] * 3, 1)
    return F.conv3d(x, weight, bias, padding=1)


def _kept_block(block: DoubleConv, x: Tensor, mask: Tensor, wanted: Tensor | slice) -> Tensor:
    """The `wanted` outputs of a block from those of its inputs that `mask` keeps."""
    first, second = (layer for layer in block if isinstance(layer, nn.Conv3d))
    if x.shape[1]:
        kept = _kept(mask)
        x = _norm_relu(conv3d(x, first.weight[:, kept] * mask[kept][:, None, None, None], first.bias))
    else:  # of a block without input instance norm leaves zeros
        x = x.new_zeros(1, first.out_channels, *x.shape[2:])
    weight = second.weight[wanted]
    if not len(weight):
        return x[:, :0]
    return _norm_relu(conv3d(x, weight, None if second.bias is None else second.bias[wanted]))


def _norm_relu(x: Tensor) -> Tensor:
    return F.instance_norm(x).relu_()


def _kept(mask: Tensor) -> Tensor:
    return mask.nonzero().flatten()
