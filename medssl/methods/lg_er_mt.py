"""LG-ER-MT: Mean Teacher that keeps local and global structure and is sure of unlabelled patches.

Hang and others, MICCAI 2020; only tests and weights were released.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from medssl.core.options import option
from medssl.core.precision import at_least_float32
from medssl.methods.facts import MethodFacts, coefficients_of
from medssl.methods.mean_teacher import MeanTeacher, MeanTeacherOptions
from medssl.methods.parts import teacher_probs


@dataclass(frozen=True)
class LGERMTOptions(MeanTeacherOptions):
    """What users may choose of LG-ER-MT."""

    structure_weight: float = option(
        1.0, "weight of each structural consistency beside the plain one", symbol="$s$", weighs="structure", at_least=0
    )
    entropy_weight: float = option(
        0.1, "weight of the student's entropy beside the consistency", symbol="$e$", weighs="entropy", at_least=0
    )


class LGERMT(MeanTeacher):
    """Mean Teacher, plus two structural consistencies and the entropy of the student on unlabelled patches.

    Local: how alike a voxel and its neighbour are must be the same for student and teacher. Global: maps of the
    self-information -p log p must be the same. Chosen here, since only the abstract was at hand: likeness is the dot
    product of probabilities with the next voxel along each axis; all terms rise with the consistency's weight.
    """

    Options = LGERMTOptions
    facts = MethodFacts("LG-ER-MT", True, 35, ("weak", "strong"), coefficients_of(LGERMTOptions))

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        unlabelled = ~batch["is_labelled"].bool()
        terms = self.labelled_terms(batch)
        taught = at_least_float32(teacher_probs(self.averaged, batch["image"][unlabelled]))
        student = at_least_float32(self.network(batch["strong"][unlabelled])).softmax(1)
        consistency = (student - taught).square().mean()
        local = local_error(student, taught)
        information = self_information(student)
        overall = (information - self_information(taught)).square().mean()
        entropy = information.sum(1).mean()
        structure = self.options.structure_weight * (local + overall)
        learnt = consistency + structure + self.options.entropy_weight * entropy
        total = terms["loss"] + self.weight_now() * learnt
        records = {"consistency": consistency, "local": local, "global": overall, "entropy": entropy}
        return {**terms, "loss": total, **records}


def likeness(probs: Tensor, axis: int) -> Tensor:
    """How alike each voxel and the next one along an axis are: the dot product of their probabilities (B, C, ...)."""
    length = probs.shape[axis] - 1
    return (probs.narrow(axis, 0, length) * probs.narrow(axis, 1, length)).sum(1)


def local_error(student: Tensor, teacher: Tensor) -> Tensor:
    """The mean squared error of the likeness of neighbours, over all axes longer than 1."""
    axes = [axis for axis in range(2, student.ndim) if student.shape[axis] > 1]
    return torch.stack([(likeness(student, axis) - likeness(teacher, axis)).square().mean() for axis in axes]).mean()


def self_information(probs: Tensor) -> Tensor:
    """-p ln p of each class and voxel; finite gradients where p is 0."""
    return -probs * probs.clamp_min(1e-7).log()
