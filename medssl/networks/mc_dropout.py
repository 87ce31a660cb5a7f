"""MC dropout as a mode of any network: dropout layers sample, everything else stays in evaluation mode."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

CHANNEL_DROPOUT = (nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)


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

    For one call of a network with plain and channel dropout; other kinds (alpha dropout) draw as they always do.
    """
    generators = [generator_of(seed) for seed in seeds]
    layers = [module for module in network.modules() if isinstance(module, (nn.Dropout, *CHANNEL_DROPOUT))]
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


def _mask_rows(generators: Sequence[torch.Generator], layer: _DropoutNd, inputs: tuple[Tensor, ...]) -> Tensor:
    (x,) = inputs
    rows = -(-len(x) // len(generators))  # more than one where the network takes the slices of a scan as a batch
    rest = (x.shape[1], *[1] * (x.ndim - 2)) if isinstance(layer, CHANNEL_DROPOUT) else x.shape[1:]
    masks = [dropout_mask((rows, *rest), layer.p, generator) for generator in generators]
    return x * torch.cat(masks)[: len(x)].to(x)
