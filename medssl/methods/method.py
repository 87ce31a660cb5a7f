"""What every training method is: a module from a batch to its named losses, and the facts that tables need of it."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn

from medssl.methods.facts import MethodFacts


@dataclass(frozen=True)
class Schedule:
    """How long a training is, for weights that change with time."""

    total_steps: int = 1
    steps_per_epoch: int = 1


@dataclass(frozen=True)
class NoOptions:
    """Of a method that leaves nothing to choose."""


class Method(nn.Module, ABC):
    """Maps a batch to named scalar losses; `loss` is minimised, the others are recorded.

    A batch has `image` (B, channels, *spatial), `label` (B, 1, *spatial) and `is_labelled` (B,); labels of unlabelled
    patches must never be read. With the view "strong" it has `strong` besides, the same patches with strong changes of
    intensity. A subclass names its `facts`; its own `Options` (a frozen dataclass) are the keys that users may give.
    """

    facts: ClassVar[MethodFacts]
    bundle: ClassVar[str] = ""  # the one bundle that trains it; any that trains in one stage by default

    Options: ClassVar[Any] = NoOptions

    def __init__(
        self, network: nn.Module, loss: nn.Module, options: Any = None, schedule: Schedule | None = None
    ) -> None:
        super().__init__()
        self.network, self.loss = network, loss
        self.options: Any = self.Options() if options is None else options
        self.schedule = Schedule() if schedule is None else schedule

    @abstractmethod
    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        """The named losses of a batch."""

    @property
    def evaluated(self) -> nn.Module:
        """The network that is validated, evaluated and exported."""
        return self.network

    @property
    def teachers(self) -> tuple[nn.Module, ...]:
        """Networks that teach and never get a gradient."""
        return ()

    def after_step(self) -> None:
        """Called by the trainer after the optimiser's step."""
