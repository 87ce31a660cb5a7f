"""Double-UA: Mean Teacher whose consistency in labels and in features weighs less where the teacher is uncertain.

Wang and others, MICCAI 2020 (double-uncertainty weighted method); no code was released.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from medssl.core.options import option
from medssl.core.precision import at_least_float32
from medssl.methods.facts import MethodFacts, coefficients_of
from medssl.methods.mean_teacher import MeanTeacher, MeanTeacherOptions
from medssl.methods.parts import noisy_passes_with_features, with_features
from medssl.uncertainty.maps import entropy_nats


@dataclass(frozen=True)
class DoubleUAOptions(MeanTeacherOptions):
    """What users may choose of Double-UA."""

    teacher_passes: int = option(8, "passes of the teacher with dropout and noise that say how sure it is", at_least=2)


class DoubleUA(MeanTeacher):
    """Squared errors of probabilities and of features against the teacher's means, both weighted by exp(-U).

    U of the probabilities is the entropy of their mean over `teacher_passes` passes with dropout and noise; U of the
    features is their variance over the passes, divided by its mean over the patch. Labelled patches count, too. Chosen
    here, since the paper has no code: features are the inputs of the last convolution, of length 1 in each voxel; the
    student sees the strong view of unlabelled patches. The paper's further term on U itself is left out: it has no
    gradient where the teacher is an average. Both U are recorded.
    """

    Options = DoubleUAOptions
    facts = MethodFacts("Double-UA", True, 28, ("weak", "strong"), coefficients_of(DoubleUAOptions))

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        unlabelled = ~batch["is_labelled"].bool()
        image, label = self.labelled_patches(batch)
        logits, features = with_features(self.network, torch.cat([image, batch["strong"][unlabelled]]))
        terms = self.loss(logits[: len(image)], label)
        taught = torch.cat([image, batch["image"][unlabelled]])
        probs, seen = noisy_passes_with_features(self.averaged, taught, self.options.teacher_passes)
        of_labels, label_doubt = weighted_consistency(logits.softmax(1), probs.mean(0), label_uncertainty(probs))
        lengths_one = F.normalize(at_least_float32(seen), dim=2)
        target, doubt = lengths_one.mean(0), feature_uncertainty(lengths_one)
        of_features, feature_doubt = weighted_consistency(F.normalize(at_least_float32(features), dim=1), target, doubt)
        total = terms["loss"] + self.weight_now() * (of_labels + of_features)
        records = {"label_uncertainty": label_doubt, "feature_uncertainty": feature_doubt}
        return {**terms, "loss": total, "consistency": of_labels, "feature_consistency": of_features, **records}


def weighted_consistency(student: Tensor, teacher: Tensor, uncertainty: Tensor) -> tuple[Tensor, Tensor]:
    """The mean squared error, each element times exp(-uncertainty), and the mean uncertainty."""
    return (torch.exp(-uncertainty) * (student - teacher).square()).mean(), uncertainty.mean()


def label_uncertainty(probs: Tensor) -> Tensor:
    """(B, 1, *spatial): entropy in nats of the mean of probabilities (passes, B, C, *spatial)."""
    return entropy_nats(probs.mean(0), 1).unsqueeze(1)


def feature_uncertainty(features: Tensor) -> Tensor:
    """(B, F, *spatial): variance of features (passes, B, F, *spatial) over the passes, 1 on average of a patch."""
    variance = features.var(0)
    mean = variance.flatten(1).mean(1).view(-1, *[1] * (variance.ndim - 1))
    return variance / mean.clamp_min(1e-12)
