"""Numbers that all processes of a group share."""

from collections.abc import Sequence

import torch.distributed as dist
from torch import Tensor


def mean_over_processes(values: Sequence[Tensor]) -> list[Tensor]:
    """Tensors as they are, or in a process group their means over all processes."""
    if not (dist.is_available() and dist.is_initialized()):
        return list(values)
    means = []
    for value in values:
        total = value.clone()
        dist.all_reduce(total)
        means.append(total / dist.get_world_size())
    return means
