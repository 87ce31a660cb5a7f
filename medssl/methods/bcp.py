"""Bidirectional copy-paste: labelled and unlabelled patches exchange boxes; the teacher labels what has no label.

Bai and others, CVPR 2023.
"""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from medssl.core.flags import flag
from medssl.core.options import option
from medssl.methods.facts import MethodFacts, coefficients_of
from medssl.methods.parts import largest_components, mixture_loss, mixtures_of, teacher_probs
from medssl.methods.scan_method import PretrainedOptions, ScanMethod


@dataclass(frozen=True)
class BCPOptions(PretrainedOptions):
    """What users may choose of bidirectional copy-paste."""

    pseudo_weight: float = option(
        0.5, "weight of the loss on pseudo-labels", symbol="$w$", weighs="pseudo-labels", at_least=0
    )
    largest_component: bool = option(True, "keep only the largest piece of each structure in a pseudo-label")
    ema_decay: float = option(0.99, "decay of the moving average, which is the teacher", at_least=0, at_most=1)
    copy_paste: float = option(2 / 3, "share of each side that a pasted box has", at_least=0.01, at_most=1)
    pretraining: float = option(
        2 / 17, "share of the compute that supervised training on the labels has first", at_least=0, at_most=0.9
    )


class BCP(ScanMethod):
    """Learns from mixtures of labelled patches and of unlabelled ones with the moving average's labels.

    As in the paper: boxes of 2/3 of each side, pseudo-labels weigh a half, only their largest pieces count, and
    training on labels with boxes pasted between them comes first. What differs: the student sees the strong view of
    unlabelled patches.
    """

    Options = BCPOptions
    facts = MethodFacts("BCP", True, 25, ("weak", "strong"), coefficients_of(BCPOptions))
    teaches_itself = True

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        unlabelled = ~batch["is_labelled"].bool()
        pseudo = teacher_probs(self.averaged, batch["image"][unlabelled]).argmax(1)
        if flag(self.options.largest_component, "largest_component"):
            pseudo = largest_components(pseudo)
        mixtures = mixtures_of(batch, pseudo.unsqueeze(1), self.options.copy_paste)
        return mixture_loss(self.loss, self.network(mixtures.images), mixtures, self.options.pseudo_weight)
