"""SASSNet: signed distances of unlabelled patches must look to a discriminator as if they were of labelled ones.

Li, Zhang and He, MICCAI 2020.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from medssl.core.options import option
from medssl.methods.facts import MethodFacts, coefficients_of
from medssl.methods.method import Schedule
from medssl.methods.parts import (
    CountsSteps,
    Discriminator,
    SideHeads,
    logits_layer,
    num_classes_of,
    sigmoid_ramp,
    signed_distance_maps,
    with_features,
)
from medssl.methods.scan_method import PretrainedOptions, ScanMethod


@dataclass(frozen=True)
class SASSNetOptions(PretrainedOptions):
    """What users may choose of SASSNet."""

    distance_weight: float = option(
        0.3, "weight of the signed distance maps", symbol="$a$", weighs="distances", at_least=0
    )
    adversarial_weight: float = option(
        0.01, "weight of the adversarial loss at the end of its rise", symbol="$w$", weighs="adversary", at_least=0
    )
    ramp_up_share: float = option(1.0, "share of all steps in which adversarial_weight rises", at_least=0, at_most=1)
    discriminator_width: int = option(16, "channels of the discriminator's first layer", at_least=1)


class SASSNet(CountsSteps, ScanMethod):
    """Segmentation loss and squared error of signed distance maps on labels; an adversarial loss on the other maps.

    The discriminator tells maps of labelled patches from those of unlabelled ones, with their images. It learns in the
    same step, by a term that gives the network no gradient, as the adversarial loss gives the discriminator none.
    Chosen here: the network's optimiser for both, a narrow discriminator that pools patches of any size, one map for
    each structure, and a head with tanh on the last features. The paper has weight 0.015 for 8 labels.
    """

    Options = SASSNetOptions
    facts = MethodFacts("SASSNet", True, 33, coefficients=coefficients_of(SASSNetOptions))

    def __init__(
        self, network: nn.Module, loss: nn.Module, options: Any = None, schedule: Schedule | None = None
    ) -> None:
        super().__init__(network, loss, options, schedule)
        structures, axes = num_classes_of(network) - 1, logits_layer(network).weight.ndim - 2
        self.heads = SideHeads(network, {"distances": structures})
        self.discriminator = Discriminator(structures, axes, self.options.discriminator_width)

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        image, label = self.labelled_patches(batch)
        number, images = len(image), torch.cat([image, batch["image"][~batch["is_labelled"].bool()]])
        logits, features = with_features(self.network, images)
        distances = self.heads(features, images.shape[2:])["distances"].tanh()
        terms = self.loss(logits[:number], label)
        maps = signed_distance_maps(label, logits.shape[1]).to(distances.dtype)
        on_distances = (distances[:number] - maps).square().mean()
        adversarial = self.adversarial_loss(distances[number:], images[number:])
        telling = self.discriminator_loss(distances, images, number)
        ramp = sigmoid_ramp(self.steps_taken, self.options.ramp_up_share * self.schedule.total_steps)
        weight = self.options.adversarial_weight * ramp
        total = terms["loss"] + self.options.distance_weight * on_distances + weight * adversarial + telling
        records = {"distances": on_distances, "adversarial": adversarial, "discriminator": telling}
        return {**terms, "loss": total, **records}

    def adversarial_loss(self, distances: Tensor, images: Tensor) -> Tensor:
        """How far unlabelled maps are from being taken for labelled ones; the discriminator gets no gradient."""
        frozen = {name: weight.detach() for name, weight in self.discriminator.named_parameters()}
        answers = functional_call(self.discriminator, frozen, (distances, images))
        return F.binary_cross_entropy_with_logits(answers, torch.ones_like(answers))

    def discriminator_loss(self, distances: Tensor, images: Tensor, labelled: int) -> Tensor:
        """How badly the discriminator knows the first `labelled` maps from the others; the network gets no gradient."""
        answers = self.discriminator(distances.detach(), images)
        is_labelled = (torch.arange(len(answers), device=answers.device) < labelled).to(answers.dtype)
        return F.binary_cross_entropy_with_logits(answers, is_labelled)
