"""Copies of a network: one that is frozen and teaches, one with weights drawn anew."""

import copy

import torch
from torch import nn


def frozen_copy(network: nn.Module) -> nn.Module:
    """A copy of `network` as it is now, without gradient."""
    return copy.deepcopy(network).requires_grad_(False)


def fresh_copy(network: nn.Module) -> nn.Module:
    """A copy of `network` whose weights are drawn anew, as its layers draw them by default."""
    copied = copy.deepcopy(network)
    for module in copied.modules():
        reset = getattr(module, "reset_parameters", None)
        if callable(reset):
            reset()
    return copied


@torch.no_grad()
def take_weights(target: nn.Module, source: nn.Module) -> None:
    """Give `target` the weights and buffers of `source`, a network of the same shape."""
    target.load_state_dict(source.state_dict())
