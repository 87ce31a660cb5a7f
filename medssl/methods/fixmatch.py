"""FixMatch in 3-D: confident labels of the weak view teach the strong view, with boxes pasted between patches.

Sohn and others, 2020; for segmentation with CutMix as in UniMatch's FixMatch, Yang and others, CVPR 2023.
"""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from medssl.core.options import option
from medssl.methods.facts import MethodFacts, coefficients_of
from medssl.methods.parts import confidence_mask, pasted_alike, random_boxes, teacher_probs
from medssl.methods.scan_method import PretrainedOptions, ScanMethod


@dataclass(frozen=True)
class FixMatchOptions(PretrainedOptions):
    """What users may choose of FixMatch."""

    unlabelled_weight: float = option(
        1.0, "weight of the loss on pseudo-labels", symbol="$w$", weighs="pseudo-labels", at_least=0
    )
    threshold: float = option(0.95, "probability from which on a voxel's label counts", at_least=0, at_most=1)
    cutmix: bool = option(True, "paste boxes between unlabelled patches")


class FixMatch(ScanMethod):
    """Segmentation loss on labels, plus the same on confident voxels of unlabelled patches.

    The network labels the weak view of a patch without dropout. It learns these labels on the strong view, in which a
    box of 2 to 40 % of the volume comes from another patch. The loss is taken over the confident voxels and scaled by
    their share, so that few confident voxels weigh little.
    """

    Options = FixMatchOptions
    facts = MethodFacts("FixMatch", True, 24, ("weak", "strong"), coefficients_of(FixMatchOptions))

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        terms = self.labelled_terms(batch)
        unlabelled = ~batch["is_labelled"].bool()
        strong = batch["strong"][unlabelled]
        probs = teacher_probs(self.network, batch["image"][unlabelled])
        labels, counts = probs.argmax(1, keepdim=True), confidence_mask(probs, self.options.threshold)
        if self.options.cutmix and len(strong) > 1:
            masks = random_boxes(len(strong), strong.shape[2:], 0.02, 0.4, strong.device)
            own = (strong, labels, counts)
            strong, labels, counts = pasted_alike(own, [part.roll(1, 0) for part in own], masks)
        weight = counts.to(strong.dtype)
        unsupervised = self.loss(self.network(strong), labels, weight)["loss"] * weight.mean()
        total = terms["loss"] + self.options.unlabelled_weight * unsupervised
        return {**terms, "loss": total, "unlabelled": unsupervised, "confident": weight.mean()}
