"""Iterated self-training: a network trained on the labels labels the other scans, learns from them, and labels again.

The recipe that won in this project's trials; its mixtures are those of bidirectional copy-paste.
"""

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from medssl.core.options import option
from medssl.methods.facts import MethodFacts, coefficients_of
from medssl.methods.method import Schedule
from medssl.methods.parts import (
    CountsSteps,
    frozen_copy,
    mixture_loss,
    mixtures_of,
    take_weights,
    teacher_probs,
)
from medssl.methods.scan_method import PretrainedOptions, ScanMethod


@dataclass(frozen=True)
class PseudoBankOptions(PretrainedOptions):
    """What users may choose of iterated self-training."""

    pseudo_weight: float = option(
        0.5, "weight of the loss on pseudo-labels", symbol="$w$", weighs="pseudo-labels", at_least=0
    )
    refresh_steps: int = option(
        50, "steps after which the moving average becomes the teacher; 0: the first teacher stays", at_least=0
    )
    ema_decay: float = option(0.99, "decay of the moving average, which is evaluated", at_least=0, at_most=1)
    copy_paste: float = option(2 / 3, "share of each side that a pasted box has", at_least=0.01, at_most=1)
    pretraining: float = option(
        0.5, "share of the compute that supervised training on the labels has first", at_least=0, at_most=0.9
    )


class PseudoBank(CountsSteps, ScanMethod):
    """Learns from mixtures of labelled patches and of unlabelled ones with the teacher's labels.

    The teacher is what the moving average was when it was last asked: every `refresh_steps` steps it is asked again.
    It sees the weak view of a patch, the student the strong one. All its labels count: there is no threshold.
    """

    Options = PseudoBankOptions
    facts = MethodFacts("iterated self-training", True, 26, ("weak", "strong"), coefficients_of(PseudoBankOptions))

    def __init__(
        self, network: nn.Module, loss: nn.Module, options: Any = None, schedule: Schedule | None = None
    ) -> None:
        super().__init__(network, loss, options, schedule)
        self.teacher = frozen_copy(network)

    @property
    def teachers(self) -> tuple[nn.Module, ...]:
        return (self.teacher,)

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        unlabelled = ~batch["is_labelled"].bool()
        pseudo = teacher_probs(self.teacher, batch["image"][unlabelled]).argmax(1, keepdim=True)
        mixtures = mixtures_of(batch, pseudo, self.options.copy_paste)
        return mixture_loss(self.loss, self.network(mixtures.images), mixtures, self.options.pseudo_weight)

    def after_step(self) -> None:
        super().after_step()
        interval = self.options.refresh_steps
        if interval and self.steps_taken % interval == 0:
            take_weights(self.teacher, self.evaluated)
