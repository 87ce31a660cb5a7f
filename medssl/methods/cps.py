"""Cross pseudo supervision: two networks with different first weights teach each other their labels.

Chen and others, CVPR 2021; in 3-D as the semi-supervised literature runs it.
"""

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from medssl.core.options import option
from medssl.methods.facts import MethodFacts, coefficients_of
from medssl.methods.method import Schedule
from medssl.methods.parts import CountsSteps, fresh_copy, sigmoid_ramp
from medssl.methods.scan_method import PretrainedOptions, ScanMethod


@dataclass(frozen=True)
class CPSOptions(PretrainedOptions):
    """What users may choose of cross pseudo supervision."""

    cross_weight: float = option(
        0.1, "weight of the networks' labels at the end of its rise", symbol="$w$", weighs="cross labels", at_least=0
    )
    ramp_up_share: float = option(1.0, "share of all steps in which cross_weight rises", at_least=0, at_most=1)


class CPS(CountsSteps, ScanMethod):
    """Segmentation loss of both networks on labels, plus cross-entropy of each with the other's hard labels.

    Both see the same patches; the first network is evaluated. The weight rises as exp(-5 (1 - t)^2). A step costs as
    much as two networks do. With pretraining, the first network starts from it and the second one does not.
    """

    Options = CPSOptions
    facts = MethodFacts("CPS", True, 23, ("weak", "strong"), coefficients_of(CPSOptions))

    def __init__(
        self, network: nn.Module, loss: nn.Module, options: Any = None, schedule: Schedule | None = None
    ) -> None:
        super().__init__(network, loss, options, schedule)
        self.second = fresh_copy(network)

    @property
    def learners(self) -> tuple[nn.Module, ...]:
        return (self.network, self.second)

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        image, label = self.labelled_patches(batch)
        unlabelled = batch["strong"][~batch["is_labelled"].bool()]
        first, second = (self.loss(network(image), label) for network in self.learners)
        ours, theirs = (network(unlabelled).float() for network in self.learners)
        cross = F.cross_entropy(ours, theirs.detach().argmax(1)) + F.cross_entropy(theirs, ours.detach().argmax(1))
        ramp = sigmoid_ramp(self.steps_taken, self.options.ramp_up_share * self.schedule.total_steps)
        total = first["loss"] + second["loss"] + self.options.cross_weight * ramp * cross
        return {**first, "loss": total, "second_loss": second["loss"], "cross": cross}
