"""Half precision where its range or its digits are not enough, and numbers that are too small to matter."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor


def at_least_float32(x: Tensor) -> Tensor:
    """Half-precision numbers as float32; others as they are."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def without_autocast(device: torch.device) -> AbstractContextManager:
    """A block in which nothing becomes half precision; torch's device for sizes knows no such thing."""
    return nullcontext() if device.type == "meta" else torch.autocast(device.type, enabled=False)


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """A block in which the CPU takes numbers below 1e-38 for 0; what was set before comes back after it.

    A network that is sure of its labels has such gradients, and a CPU needs a hundred times as long for each of them.
    """
    was_flushed = (torch.full((), 1e-40) * 0.5).item() == 0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(was_flushed)
