"""Mean Teacher: on unlabelled patches the student follows the moving average of its own weights.

Tarvainen and Valpola, 2017; in 3-D as the semi-supervised literature runs it on the left atrium.
"""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from medssl.core.options import option
from medssl.methods.facts import MethodFacts, coefficients_of
from medssl.methods.parts import CountsSteps, sigmoid_ramp, teacher_probs
from medssl.methods.scan_method import PretrainedOptions, ScanMethod


@dataclass(frozen=True)
class MeanTeacherOptions(PretrainedOptions):
    """What users may choose of Mean Teacher."""

    consistency_weight: float = option(
        0.1, "weight of the consistency loss at the end of its rise", symbol="$w$", weighs="consistency", at_least=0
    )
    ramp_up_share: float = option(1.0, "share of all steps in which consistency_weight rises", at_least=0, at_most=1)
    ema_decay: float = option(0.99, "decay of the moving average, which is the teacher", at_least=0, at_most=1)


class MeanTeacher(CountsSteps, ScanMethod):
    """Segmentation loss on labels, plus squared error between the student's and the teacher's probabilities.

    The teacher sees the weak view of an unlabelled patch, the student its strong view; the teacher is evaluated. The
    weight of the squared error rises as exp(-5 (1 - t)^2). What the papers leave open: strong views in place of noise.
    """

    Options = MeanTeacherOptions
    facts = MethodFacts("Mean Teacher", True, 20, ("weak", "strong"), coefficients_of(MeanTeacherOptions))
    teaches_itself = True

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        labelled = batch["is_labelled"].bool()
        terms = self.labelled_terms(batch)
        taught = teacher_probs(self.averaged, batch["image"][~labelled])
        student = self.network(batch["strong"][~labelled]).softmax(1)
        consistency = (student - taught).square().mean()
        return {**terms, "loss": terms["loss"] + self.weight_now() * consistency, "consistency": consistency}

    def weight_now(self) -> float:
        """The weight of the consistency loss at this step."""
        ramp = sigmoid_ramp(self.steps_taken, self.options.ramp_up_share * self.schedule.total_steps)
        return self.options.consistency_weight * ramp
