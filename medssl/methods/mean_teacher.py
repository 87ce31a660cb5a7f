"""Mean Teacher: on unlabelled patches the student follows the moving average of its own weights.

Tarvainen and Valpola, 2017; in 3-D as the semi-supervised literature runs it on the left atrium.
"""

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from medssl.core.options import option
from medssl.methods.facts import MethodFacts, coefficients_of
from medssl.methods.method import Schedule
from medssl.methods.parts import AveragedMethod, CountsSteps, sigmoid_ramp, teacher_probs


@dataclass(frozen=True)
class MeanTeacherOptions:
    """What users may choose of Mean Teacher."""

    consistency_weight: float = option(
        0.1, "weight of the consistency loss at the end of its rise", symbol="$w$", weighs="consistency", at_least=0
    )
    ramp_up_share: float = option(1.0, "share of all steps in which consistency_weight rises", at_least=0, at_most=1)
    ema_decay: float = option(0.99, "decay of the moving average, which is the teacher", at_least=0, at_most=1)


class MeanTeacher(CountsSteps, AveragedMethod):
    """Segmentation loss on labels, plus squared error between the student's and the teacher's probabilities.

    The teacher sees the weak view of an unlabelled patch, the student its strong view; the teacher is evaluated. The
    weight of the squared error rises as exp(-5 (1 - t)^2). What the papers leave open: strong views in place of noise.
    """

    Options = MeanTeacherOptions
    facts = MethodFacts("Mean Teacher", True, 20, ("weak", "strong"), coefficients_of(MeanTeacherOptions))

    def __init__(self, network: nn.Module, loss: nn.Module, options: Any = None, schedule: Schedule | None = None):
        options = MeanTeacherOptions() if options is None else options
        super().__init__(network, loss, options, schedule, ema_decay=options.ema_decay)

    @property
    def teachers(self) -> tuple[nn.Module, ...]:
        return (self.averaged,)

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        labelled = batch["is_labelled"].bool()
        terms = self.loss(self.network(batch["image"][labelled]), batch["label"][labelled])
        taught = teacher_probs(self.averaged, batch["image"][~labelled])
        student = self.network(batch["strong"][~labelled]).softmax(1)
        consistency = (student - taught).square().mean()
        return {**terms, "loss": terms["loss"] + self.weight_now() * consistency, "consistency": consistency}

    def weight_now(self) -> float:
        """The weight of the consistency loss at this step."""
        ramp = sigmoid_ramp(self.steps_taken, self.options.ramp_up_share * self.schedule.total_steps)
        return self.options.consistency_weight * ramp
