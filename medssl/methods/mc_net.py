"""MC-Net+: several networks agree with each other's sharpened probabilities.

Wu and others, Medical Image Analysis 2022.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from medssl.core.options import option
from medssl.core.precision import at_least_float32
from medssl.methods.facts import MethodFacts, coefficients_of
from medssl.methods.method import Schedule
from medssl.methods.parts import CountsSteps, fresh_copy, sigmoid_ramp
from medssl.methods.scan_method import PretrainedOptions, ScanMethod


@dataclass(frozen=True)
class MCNetOptions(PretrainedOptions):
    """What users may choose of MC-Net+."""

    consistency_weight: float = option(
        1.0, "weight of the mutual consistency at the end of its rise", symbol="$w$", weighs="consistency", at_least=0
    )
    ramp_up_share: float = option(1.0, "share of all steps in which consistency_weight rises", at_least=0, at_most=1)
    temperature: float = option(0.1, "probabilities are sharpened to p^(1/temperature)", at_least=0.01, at_most=1)
    networks: int = option(3, "how many networks there are, as decoders in the paper", at_least=2, at_most=5)


class MCNet(CountsSteps, ScanMethod):
    """Segmentation loss of each network on labels, plus squared errors from every other one's sharpened probabilities.

    The paper has three decoders with different up-sampling on one encoder. That cannot be had of any network: here the
    further decoders are whole copies with weights drawn anew, so that a step costs as much as all networks do. All
    patches count for the consistency; sharpened probabilities are targets and get no gradient. The first is evaluated.
    """

    Options = MCNetOptions
    facts = MethodFacts("MC-Net+", True, 31, coefficients=coefficients_of(MCNetOptions))

    def __init__(
        self, network: nn.Module, loss: nn.Module, options: Any = None, schedule: Schedule | None = None
    ) -> None:
        super().__init__(network, loss, options, schedule)
        self.others = nn.ModuleList(fresh_copy(network) for _ in range(self.options.networks - 1))

    @property
    def learners(self) -> tuple[nn.Module, ...]:
        return (self.network, *self.others)

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        image, label = self.labelled_patches(batch)
        images = torch.cat([image, batch["image"][~batch["is_labelled"].bool()]])
        logits = [network(images) for network in self.learners]
        terms = [self.loss(answer[: len(image)], label) for answer in logits]
        supervised = torch.stack([term["loss"] for term in terms]).sum()
        consistency = mutual_error([at_least_float32(answer).softmax(1) for answer in logits], self.options.temperature)
        ramp = sigmoid_ramp(self.steps_taken, self.options.ramp_up_share * self.schedule.total_steps)
        total = supervised + self.options.consistency_weight * ramp * consistency
        return {**terms[0], "loss": total, "supervised": supervised, "consistency": consistency}


def mutual_error(answers: list[Tensor], temperature: float) -> Tensor:
    """The sum over ordered pairs of mean squared errors of probabilities from the other's sharpened ones."""
    targets = [sharpened(probs.detach(), temperature) for probs in answers]
    errors = [
        (probs - target).square().mean()
        for number, probs in enumerate(answers)
        for other, target in enumerate(targets)
        if number != other
    ]
    return torch.stack(errors).sum()


def sharpened(probs: Tensor, temperature: float) -> Tensor:
    """p^(1/temperature), scaled to sum to 1 over the classes again; (B, C, *spatial)."""
    return torch.softmax(probs.clamp_min(1e-12).log() / temperature, dim=1)
