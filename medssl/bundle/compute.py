"""How much a step of a method computes, and how many epochs a budget of compute buys for each stage of a training."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch

from medssl.core.errors import ConfigError
from medssl.engine.patch_passes import PatchPasses, counted_passes
from medssl.methods.method import Method

MOST_STEPS_PER_EPOCH = 50  # where a budget is given and no number of steps
EPOCHS_OF_A_STAGE = 5  # at least, so that rounding to whole epochs loses little


@dataclass(frozen=True)
class StageCost:
    """A stage's share of the compute, and the patch passes of one of its steps."""

    name: str
    share: float
    passes_per_step: float


def passes_per_step(
    method: Method, patch: Sequence[int], labelled: int, unlabelled: int, device: torch.device
) -> float:
    """The patch passes of one step of a method, counted at a step of its copy on noise.

    labelled, unlabelled: patches in a batch. Nothing is left behind: neither weights nor random numbers.
    """
    passes = PatchPasses()
    with torch.random.fork_rng():
        method = copy.deepcopy(method).to(device).train()
        image = torch.rand((labelled + unlabelled, 1, *patch), device=device)
        batch = {"image": image, "strong": image, "label": torch.zeros_like(image, dtype=torch.uint8)}
        batch["is_labelled"] = torch.arange(len(image), device=device) < labelled
        with counted_passes(method, passes):
            method(batch)
    return passes.units


def steps_within(budget: float, stages: Sequence[StageCost]) -> list[int]:
    """How many steps each stage can have; ConfigError if the budget is too small for one step of each."""
    for stage in stages:
        if stage.share * budget < stage.passes_per_step:
            needed = max(stage.passes_per_step / stage.share for stage in stages)
            raise ConfigError(
                f"patch_passes {budget:g}: too few for one step of the stage '{stage.name}', which has "
                f"{stage.share:.0%} of them. Give at least {needed:.0f}."
            )
    return [int(stage.share * budget / stage.passes_per_step) for stage in stages]


def steps_of_an_epoch(steps: Sequence[int]) -> int:
    """A length of epochs that every stage can have a few of."""
    return max(1, min(MOST_STEPS_PER_EPOCH, min(steps) // EPOCHS_OF_A_STAGE))


def ends_within(steps: Sequence[int], steps_per_epoch: int) -> list[int]:
    """The last epoch of each stage, for stages of about so many steps."""
    return list(accumulate(max(1, round(number / steps_per_epoch)) for number in steps))


def ends_by_share(epochs: int, shares: Sequence[float]) -> list[int]:
    """The last epoch of each stage where `epochs` are divided by share; ConfigError if there are fewer than stages."""
    if epochs < len(shares):
        raise ConfigError(f"max_epochs {epochs}: the training has {len(shares)} stages. Give at least {len(shares)}.")
    ends = [max(number + 1, round(epochs * share)) for number, share in enumerate(accumulate(shares))]
    return [min(end, epochs - (len(shares) - 1 - number)) for number, end in enumerate(ends)]
