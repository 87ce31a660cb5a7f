"""How many windows go through a network at a time: as many as help, no more than fit into memory."""

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from medssl.core.memory import available_bytes

MOST_ON_CPU, MOST_ON_GPU = 4, 16
ENOUGH_PIXELS = 128 * 128  # in the plane: from there on a CPU gains nothing from more windows at a time
SHARE_OF_MEMORY = 0.5


def windows_at_a_time(network: nn.Module, image: Tensor, window: Sequence[int]) -> int:
    """Number of windows of `image` (1, C, *size) that the network takes at a time.

    A CPU wants a few where windows are small (alone they get slower convolutions); more only take memory. A GPU gets
    as many as fit into half of its free memory, by what the layers give out for one window.
    """
    enough_on_cpu = -(-ENOUGH_PIXELS // (window[0] * window[1]))
    wanted = MOST_ON_GPU if image.is_cuda else min(MOST_ON_CPU, enough_on_cpu)
    if wanted == 1:
        return 1
    try:
        bytes_per_window = bytes_given_out(network, (1, image.shape[1], *window))
    except (RuntimeError, NotImplementedError):  # it looks at numbers, and sizes have none
        return 1
    return max(1, min(wanted, int(SHARE_OF_MEMORY * free_bytes(image.device) / bytes_per_window)))


def free_bytes(device: torch.device) -> int:
    """Memory that can still be had, in bytes."""
    return available_bytes(device)


def bytes_given_out(network: nn.Module, shape: Sequence[int]) -> int:
    """Bytes of all that the layers give out for an input of `shape`: an upper limit of what one pass needs at a time.

    Only sizes are computed (torch's meta device).
    """
    x = torch.zeros(tuple(shape), device="meta")
    total = x.nbytes

    def add(_layer: nn.Module, _inputs: object, output: object) -> None:
        nonlocal total
        total += output.nbytes if isinstance(output, Tensor) else 0

    sizes_only = copy.deepcopy(network).to("meta").eval()
    for module in sizes_only.modules():
        if not list(module.children()):
            module.register_forward_hook(add)
    sizes_only(x)
    return total
