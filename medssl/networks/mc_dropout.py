"""MC dropout as a mode of any network: dropout layers sample, everything else stays in evaluation mode."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn
from torch.nn.modules.dropout import _DropoutNd


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


def has_dropout(network: nn.Module) -> bool:
    """Whether any of its layers drops something: whether one pass in that mode differs from the next."""
    return any(module.p > 0 for module in network.modules() if isinstance(module, _DropoutNd))
