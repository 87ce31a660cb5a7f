"""Half precision where its range or its digits are not enough."""

import torch
from torch import Tensor


def at_least_float32(x: Tensor) -> Tensor:
    """Half-precision numbers as float32; others as they are."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
