"""Half precision where its range or its digits are not enough."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


def at_least_float32(x: Tensor) -> Tensor:
    """Half-precision numbers as float32; others as they are."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def without_autocast(device: torch.device) -> AbstractContextManager:
    """A block in which nothing becomes half precision; torch's device for sizes knows no such thing."""
    return nullcontext() if device.type == "meta" else torch.autocast(device.type, enabled=False)
