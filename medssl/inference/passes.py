"""The passes of a plan, computed: all of the network for each, or the encoder once for all samples of a window."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from medssl.core.seeding import derive_seed
from medssl.inference.backends import Backend
from medssl.inference.windows import Plan, Start, box

Item = TypeVar("Item")


class Pass(NamedTuple):
    """One sample of the window that begins at `start`."""

    start: Start
    sample: int


class Passes(NamedTuple):
    """How the passes of one scan are computed.

    image: (1, C, *size). seed: what all samples follow from, None for passes without dropout. batch: windows at a time.
    A pass draws what follows from seed, start and sample, so it is the same in every mode, batch and back end.
    """

    backend: Backend
    image: Tensor
    window: Sequence[int]
    batch: int
    seed: int | None

    def whole(self, plan: Plan) -> Iterator[tuple[list[Pass], Tensor]]:
        """Some passes at a time with their probabilities, (n, K, *window): each through all of the network."""
        passes = [Pass(start, sample) for start, samples in plan.items() for sample in range(samples)]
        for portion in _portions(passes, self.batch):
            windows = torch.cat([self._crop(one_pass.start) for one_pass in portion])
            seeds = None if self.seed is None else [self._seed(one_pass) for one_pass in portion]
            yield portion, torch.softmax(self.backend.whole(windows, seeds).float(), dim=1)

    def shared(self, plan: Plan) -> Iterator[tuple[list[Pass], Tensor]]:
        """The same one pass at a time: a window goes through the encoder once, its samples through the decoder."""
        for starts in _portions(list(plan), self.batch):
            features = self.backend.encode(torch.cat([self._crop(start) for start in starts]))
            for row, start in enumerate(starts):
                own = [level[row : row + 1] for level in features]
                for one_pass in (Pass(start, sample) for sample in range(plan[start])):
                    yield [one_pass], torch.softmax(self.backend.decode(own, self._seed(one_pass)).float(), dim=1)

    def _crop(self, start: Start) -> Tensor:
        return self.image[box(start, self.window)]

    def _seed(self, one_pass: Pass) -> int:
        return derive_seed(str(self.seed), *one_pass.start, one_pass.sample)


def _portions(items: list[Item], size: int) -> Iterator[list[Item]]:
    for first in range(0, len(items), size):
        yield items[first : first + size]
