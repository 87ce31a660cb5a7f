"""How much a training has computed, counted at the networks: patches that went through them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import ignite.distributed as idist
import torch
from torch import nn

TEACHING_SHARE = 1 / 3  # of a pass forward and backward: a backward pass costs about two forward ones


@dataclass
class PatchPasses:
    """Patches that went through networks. learnt: forward and backward. taught: forward alone."""

    learnt: int = 0
    taught: int = 0

    @property
    def units(self) -> float:
        """In passes forward and backward of one patch."""
        return self.learnt + TEACHING_SHARE * self.taught

    def of_all_processes(self) -> "PatchPasses":
        """The sum over the processes of a group."""
        if idist.get_world_size() == 1:
            return PatchPasses(self.learnt, self.taught)
        return PatchPasses(int(idist.all_reduce(self.learnt)), int(idist.all_reduce(self.taught)))

    def to_json(self) -> dict[str, float]:
        return {**asdict(self), "units": round(self.units, 3)}


@contextmanager
def counted_passes(method: nn.Module, passes: PatchPasses) -> Iterator[PatchPasses]:
    """Adds to `passes` the patches that go through a method's networks in the block, those that learn and teach."""

    def count(network: nn.Module, inputs: tuple[Any, ...]) -> None:
        if torch.is_grad_enabled():
            passes.learnt += len(inputs[0])
        else:
            passes.taught += len(inputs[0])

    networks = [*getattr(method, "learners", ()), *getattr(method, "teachers", ())]
    different = {id(network): network for network in networks}.values()
    hooks = [network.register_forward_pre_hook(count) for network in different]
    try:
        yield passes
    finally:
        for hook in hooks:
            hook.remove()
