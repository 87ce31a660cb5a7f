"""MC dropout as a mode of any network: dropout layers sample, everything else stays in evaluation mode.

Dropout layers are torch's (Dropout, Dropout1d to 3d, AlphaDropout, FeatureAlphaDropout). Stochastic depth (MONAI's
DropPath) is none: it skips layers of a block for a whole patch, and stays off.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from medssl.core.errors import ConfigError

CHANNEL_DROPOUT = (nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.FeatureAlphaDropout)
ALPHA_DROPOUT = (nn.AlphaDropout, nn.FeatureAlphaDropout)
DROPPED_BY_ALPHA = -1.7580993408473766  # what SELU tends to for small inputs: its -scale * alpha


@contextmanager
def mc_dropout(network: nn.Module, enabled: bool = True) -> Iterator[nn.Module]:
    """`network` in evaluation mode, its dropout layers (only) sampling if `enabled`; the old modes come back after."""
    modes = {module: module.training for module in network.modules()}
    try:
        network.eval()
        if enabled:
            for module in network.modules():
                if isinstance(module, _DropoutNd):
                    module.train()
        yield network
    finally:
        for module, training in modes.items():
            module.training = training


@contextmanager
def seeded_dropout(network: nn.Module, seeds: Sequence[int]) -> Iterator[nn.Module]:
    """Row i of a batch draws its masks from `seeds[i]` in the block: the same ones, whatever rows are beside it.

    For one call of a network, with any kind of dropout layers.
    """
    generators = [generator_of(seed) for seed in seeds]
    layers = [module for module in network.modules() if isinstance(module, _DropoutNd)]
    modes = [layer.training for layer in layers]
    hooks = [layer.eval().register_forward_pre_hook(partial(_mask_rows, generators)) for layer in layers]
    try:
        yield network
    finally:
        for layer, training, hook in zip(layers, modes, hooks, strict=True):
            hook.remove()
            layer.training = training


def generator_of(seed: int) -> torch.Generator:
    """A generator of its own, on the CPU so that masks are the same on every device."""
    return torch.Generator().manual_seed(seed)


def dropout_mask(shape: Sequence[int], p: float, generator: torch.Generator) -> Tensor:
    """0 with probability `p`, else 1 / (1 - p): what a dropout layer multiplies its input with."""
    kept = torch.rand(tuple(shape), generator=generator) >= p
    return kept / (1 - p) if p < 1 else kept.float()


def has_dropout(network: nn.Module) -> bool:
    """Whether any of its layers drops something: whether one pass in that mode differs from the next."""
    return any(module.p > 0 for module in network.modules() if isinstance(module, _DropoutNd))


def require_dropout(network: nn.Module, samples: int) -> None:
    """ConfigError if `samples` predictions by dropout are asked of a network that drops nothing; 0 is always right."""
    if samples > 0 and not has_dropout(network):
        raise ConfigError(
            f"network {type(network).__name__} has no dropout layer that drops anything: samples {samples} would all "
            "be the same. Give --samples 0, or dropout in network_def: UNet's dropout, SegResNet's dropout_prob."
        )


def _mask_rows(generators: Sequence[torch.Generator], layer: _DropoutNd, inputs: tuple[Tensor, ...]) -> Tensor:
    """What the layer would give for its input, with masks of each row's own generator."""
    (x,) = inputs
    rows = -(-len(x) // len(generators))  # more than one where the network takes the slices of a scan as a batch
    rest = (x.shape[1], *[1] * (x.ndim - 2)) if isinstance(layer, CHANNEL_DROPOUT) else x.shape[1:]
    masks = [dropout_mask((rows, *rest), layer.p, generator) for generator in generators]
    mask = torch.cat(masks)[: len(x)].to(x)
    return _alpha_dropped(x, mask > 0, layer.p) if isinstance(layer, ALPHA_DROPOUT) else x * mask


def _alpha_dropped(x: Tensor, kept: Tensor, p: float) -> Tensor:
    """Alpha dropout: what is not kept takes one value; scaled and shifted so that mean 0 and variance 1 stay."""
    if p in (0, 1):
        return x * (1 - p)
    scale = ((1 - p) * (1 + p * DROPPED_BY_ALPHA**2)) ** -0.5
    return scale * (torch.where(kept, x, DROPPED_BY_ALPHA) - DROPPED_BY_ALPHA * p)
