"""How much memory a training needs, by an estimate, and the refusal of one that needs more than there is."""

from collections.abc import Iterable, Sequence

import torch
from torch import nn

from medssl.bundle.scan_data import ScanData
from medssl.core.memory import require_memory
from medssl.data.scan_shapes import grid_shape, shapes_on_grid
from medssl.networks.activations import step_bytes

IMAGE_AND_LABEL_BYTES = 4 + 1  # of a voxel that is kept: float32 and uint8
SMALLER = "Give a smaller --patch_size or --batch_size, or --cache disk with a --cache_dir."


def weights_bytes(networks: Iterable[nn.Module], moments: int = 2) -> int:
    """Weights, their gradients and the optimiser's moments of them (Adam has two); what networks share counts once."""
    total, counted = 0, set[int]()
    for network in networks:
        for tensor in (*network.parameters(), *network.buffers()):
            if id(tensor) not in counted:
                counted.add(id(tensor))
                total += tensor.numel() * tensor.element_size() * (2 + moments if tensor.requires_grad else 1)
    return total


def cached_bytes(data: ScanData, learns_from_unlabelled: bool) -> int:
    """Prepared cases that are kept in memory: of training on regions, of validation whole. 0 with another cache.

    Processes that load data share them.
    """
    if data.options.cache != "memory":
        return 0
    roles = ["labelled", "unlabelled"] if learns_from_unlabelled else ["labelled"]
    counts = data.split.counts
    shapes = shapes_on_grid(data.split.cases, data.pipeline)
    if not shapes:
        return 0
    trained = _mean_voxels([grid_shape(shape, data.pipeline, training=True) for shape in shapes])
    validated = _mean_voxels(shapes)
    voxels = trained * sum(counts[role] for role in roles) + validated * counts["validation"]
    return int(voxels * IMAGE_AND_LABEL_BYTES)


def training_bytes(
    networks: Sequence[nn.Module],
    batches: Sequence[Sequence[int]],
    cached: int,
    with_average: bool,
    moments: int = 2,
) -> int | None:
    """What a training needs whose stages train these networks, each with batches of its shape, one after the other.

    with_average: a moving average of the weights is kept besides. moments: of the optimiser. None where nobody knows.
    """
    steps = [step_bytes(network, batch) for network, batch in zip(networks, batches, strict=True)]
    known = [step for step in steps if step is not None]
    if len(known) < len(steps):
        return None
    averages = sum(tensor.numel() * tensor.element_size() for tensor in networks[-1].parameters()) * with_average
    return weights_bytes(networks, moments) + averages + max(known) + cached


def require_training_memory(need: int | None, device: torch.device, way_out: str = SMALLER) -> None:
    """ConfigError if a training needs more memory than is free; way_out: what makes it smaller."""
    if need is not None:
        require_memory(need, "this training", way_out, device)


def _mean_voxels(shapes: Sequence[Sequence[int]]) -> float:
    return sum(shape[0] * shape[1] * shape[2] for shape in shapes) / len(shapes)
