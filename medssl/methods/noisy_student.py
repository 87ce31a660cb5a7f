"""Noisy student: students with fresh weights learn the labels of the network before them, and at last the true ones.

Xie and others, CVPR 2020; for scans as iterated self-training with fine-tuning on the labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from medssl.core.options import option
from medssl.methods.facts import MethodFacts, coefficients_of
from medssl.methods.method import EarlierStage, Schedule
from medssl.methods.parts import fresh_copy, frozen_copy, teacher_probs
from medssl.methods.scan_method import LabelledLearning, PretrainedOptions, ScanMethod


@dataclass(frozen=True)
class NoisyStudentOptions(PretrainedOptions):
    """What users may choose of the noisy student."""

    rounds: int = option(2, "students after each other, each taught by the one before it", at_least=1)
    pseudo_weight: float = option(
        1.0, "weight of the loss on pseudo-labels", symbol="$w$", weighs="pseudo-labels", at_least=0
    )
    pretraining: float = option(
        0.25, "share of the compute that supervised training on the labels has first", at_least=0.01, at_most=0.7
    )
    fine_tuning: float = option(
        0.1, "share of the compute that training on the labels has at last", at_least=0.01, at_most=0.25
    )


class StudentRound(ScanMethod):
    """A student with fresh weights learns true labels, and hard labels of the frozen network of the stage before.

    The teacher sees the weak view of an unlabelled patch without dropout, the student the strong view with dropout.
    """

    Options = NoisyStudentOptions

    def __init__(
        self, network: nn.Module, loss: nn.Module, options: Any = None, schedule: Schedule | None = None
    ) -> None:
        super().__init__(fresh_copy(network), loss, options, schedule)
        self.teacher = frozen_copy(network)

    @property
    def teachers(self) -> tuple[nn.Module, ...]:
        return (self.teacher,)

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        unlabelled = ~batch["is_labelled"].bool()
        terms = self.labelled_terms(batch)
        pseudo_labels = teacher_probs(self.teacher, batch["image"][unlabelled]).argmax(1, keepdim=True)
        pseudo = self.loss(self.network(batch["strong"][unlabelled]), pseudo_labels)["loss"]
        return {**terms, "loss": terms["loss"] + self.options.pseudo_weight * pseudo, "pseudo": pseudo}


class NoisyStudent(LabelledLearning):
    """The last stage: the last student is fine-tuned on the labels alone.

    Before it come training on the labels and `rounds` of students, which share the rest of the compute evenly. What the
    paper leaves open for scans: all voxels of a pseudo-label count, students are as large as their teachers, the noise
    is the strong view and the network's dropout, and pseudo-labels are made anew for each patch.
    """

    Options = NoisyStudentOptions
    facts = MethodFacts("noisy student", True, 27, ("weak", "strong"), coefficients_of(NoisyStudentOptions))

    @classmethod
    def earlier_stages(cls, options: Any) -> Sequence[EarlierStage]:
        """Training on the labels, then the rounds."""
        share = (1 - options.pretraining - options.fine_tuning) / options.rounds
        numbers = range(1, options.rounds + 1)
        rounds = [EarlierStage(f"round_{number}", StudentRound, options, share) for number in numbers]
        return (*super().earlier_stages(options), *rounds)
