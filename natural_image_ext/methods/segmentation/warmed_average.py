"""A moving average that follows fast at first, and whose batch norms are averages, too (AugSeg)."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


def warmed_decay(updates: int, decay: float) -> float:
    """The decay of the update after `updates` of them: 1 - 1 / (updates + 1), at most `decay`.

    So the average is at first the plain mean of all weights so far.
    """
    return min(1 - 1 / (updates + 1), decay)


def warmed_averaging(decay: float) -> Callable[[Sequence[Tensor], Sequence[Tensor], Tensor | int], None]:
    """What torch's AveragedModel calls with the averaged tensors, the current ones and the number of updates."""

    @torch.no_grad()
    def follow(averaged: Sequence[Tensor], current: Sequence[Tensor], updates: Tensor | int) -> None:
        for mean, new in zip(averaged, current, strict=True):
            mean.lerp_(new, 1 - warmed_decay(int(updates), decay))

    return follow


def norm_statistics(network: nn.Module) -> list[Tensor]:
    """Running means and variances of its batch norms, the buffers themselves."""
    norms = [module for module in network.modules() if isinstance(module, _BatchNorm)]
    pairs = [(norm.running_mean, norm.running_var) for norm in norms]
    return [buffer for pair in pairs for buffer in pair if buffer is not None]
