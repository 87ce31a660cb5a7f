"""Reciprocal Learning: a teacher learns from how well its labels help a student on the labelled patches.

Zeng and others, MICCAI 2021.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from medssl.core.options import option
from medssl.core.precision import at_least_float32
from medssl.methods.facts import MethodFacts
from medssl.methods.method import Schedule
from medssl.methods.parts import fresh_copy, mean_over_processes
from medssl.methods.scan_method import PretrainedOptions, ScanMethod


@dataclass(frozen=True)
class ReciprocalLearningOptions(PretrainedOptions):
    """What users may choose of Reciprocal Learning."""

    feedback_step: float = option(0.01, "length of the student's step that the teacher is judged by", at_least=0)
    pretraining: float = option(
        0.5,
        "share of the compute that training of the teacher on the labels has first",
        at_least=0,
        at_most=0.9,
    )


class ReciprocalLearning(ScanMethod):
    """The student learns the teacher's labels alone; the teacher learns true labels, and its own where they helped.

    After a step of length h along the gradient u of the student's loss on pseudo-labels, l is the gradient of its loss
    on true labels; h <u, l> weighs the teacher's cross-entropy with its own labels. All losses are cross-entropies. The
    teacher starts from pre-training, the student from fresh weights; the student is evaluated. Chosen here: the step
    that judges is a plain one of the paper's learning rate, whatever the optimiser does; both learn in one step.
    """

    Options = ReciprocalLearningOptions
    facts = MethodFacts("Reciprocal Learning", True, 36)

    def __init__(
        self, network: nn.Module, loss: nn.Module, options: Any = None, schedule: Schedule | None = None
    ) -> None:
        super().__init__(fresh_copy(network), loss, options, schedule)
        self.teacher = network

    @property
    def learners(self) -> tuple[nn.Module, ...]:
        return (self.network, self.teacher)

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        image, label = self.labelled_patches(batch)
        unlabelled = batch["image"][~batch["is_labelled"].bool()]
        answers = self.teacher(unlabelled)
        pseudo_labels = answers.detach().argmax(1, keepdim=True)
        student, gradients = self.student_loss(unlabelled, pseudo_labels)
        help_given = self.feedback(gradients, image, label)
        supervised, own = cross_entropy(self.teacher(image), label), cross_entropy(answers, pseudo_labels)
        total = student + supervised + help_given * own
        return {
            "loss": total,
            "student": student.detach(),
            "supervised": supervised,
            "own": own,
            "feedback": help_given,
        }

    def student_loss(self, images: Tensor, pseudo_labels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """The student's loss on pseudo-labels, whose gradient is known already, and this gradient by weight."""
        weights = dict(self.network.named_parameters())
        loss = cross_entropy(self.network(images), pseudo_labels)
        gradients = dict(zip(weights, torch.autograd.grad(loss, list(weights.values())), strict=True))
        along = torch.stack([(weights[name] * gradient).sum() for name, gradient in gradients.items()]).sum()
        return loss.detach() + along - along.detach(), gradients  # a second way through the network is saved

    def feedback(self, gradients: dict[str, Tensor], image: Tensor, label: Tensor) -> Tensor:
        """How much a step along `gradients` of pseudo-labels helps the student on true ones."""
        step, weights = self.options.feedback_step, dict(self.network.named_parameters())
        together = mean_over_processes(list(gradients.values()))
        moved = {
            name: (weights[name] - step * gradient).detach().requires_grad_()
            for name, gradient in zip(gradients, together, strict=True)
        }
        loss = cross_entropy(functional_call(self.network, moved, (image,)), label)
        wanted = mean_over_processes(list(torch.autograd.grad(loss, list(moved.values()))))
        return step * torch.stack([(ours * true).sum() for ours, true in zip(together, wanted, strict=True)]).sum()


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """The cross-entropy of logits (B, C, *spatial) with labels (B, 1, *spatial)."""
    return F.cross_entropy(at_least_float32(logits), labels.squeeze(1).long())
