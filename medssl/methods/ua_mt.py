"""UA-MT: Mean Teacher that learns only where the teacher is certain.

Yu and others, MICCAI 2019.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from medssl.core.options import option
from medssl.methods.facts import MethodFacts, coefficients_of
from medssl.methods.mean_teacher import MeanTeacher, MeanTeacherOptions
from medssl.methods.parts import entropy_mask, noisy_passes, sigmoid_ramp, teacher_probs, ua_mt_entropy_limit


@dataclass(frozen=True)
class UAMTOptions(MeanTeacherOptions):
    """What users may choose of UA-MT."""

    teacher_passes: int = option(8, "passes of the teacher with dropout and noise that say how sure it is", at_least=2)


class UAMT(MeanTeacher):
    """Mean Teacher whose squared error counts only voxels with little entropy of the teacher.

    The entropy is that of the mean over `teacher_passes` passes with dropout and noise; the limit rises from 3/4 of the
    highest entropy to all of it, so that the mask opens. The target is one pass without both, on the weak view.
    """

    Options = UAMTOptions
    facts = MethodFacts("UA-MT", True, 21, ("weak", "strong"), coefficients_of(UAMTOptions))

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        terms = self.labelled_terms(batch)
        unlabelled = ~batch["is_labelled"].bool()
        image = batch["image"][unlabelled]
        taught = teacher_probs(self.averaged, image)
        student = self.network(batch["strong"][unlabelled]).softmax(1)
        certain = self.certain_voxels(image).unsqueeze(1)
        error = (student - taught).square()
        consistency = (certain * error).sum() / (certain.sum() * error.shape[1]).clamp_min(1e-5)
        total = terms["loss"] + self.weight_now() * consistency
        return {**terms, "loss": total, "consistency": consistency, "certain": certain.float().mean()}

    @torch.no_grad()
    def certain_voxels(self, image: Tensor) -> Tensor:
        """Where (B, *spatial) the teacher is certain enough at this step."""
        probs = noisy_passes(self.averaged, image, self.options.teacher_passes).mean(0)
        limit = ua_mt_entropy_limit(probs.shape[1], sigmoid_ramp(self.steps_taken, self.schedule.total_steps))
        return entropy_mask(probs, limit)
