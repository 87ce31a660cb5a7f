"""How much memory the activations of a training step take, found without computing any of them."""

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn


def step_bytes(network: nn.Module, batch: Sequence[int]) -> int | None:
    """Bytes that a step with a batch of this shape, (B, channels, *spatial), takes besides weights and gradients.

    That is what the forward pass keeps for the backward pass, and beside it twice the largest tensor: the gradient that
    comes and the one that goes. A copy of the network runs on torch's device for sizes; None where it cannot.
    """
    kept: list[Tensor] = []

    def keep(tensor: Tensor) -> Tensor:
        kept.append(tensor)
        return tensor

    try:
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            sizes_only = copy.deepcopy(network).to("meta").train()
            with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
                result = sizes_only(torch.zeros(*batch, device="meta"))
    except Exception:  # it looks at numbers, or needs more than a batch: nothing is known then
        return None
    del result
    weights = {parameter.untyped_storage()._cdata for parameter in sizes_only.parameters()}
    sizes = {tensor.untyped_storage()._cdata: tensor.untyped_storage().nbytes() for tensor in kept}
    activations = [size for storage, size in sizes.items() if storage not in weights]
    return sum(activations) + 2 * max(activations, default=0)
