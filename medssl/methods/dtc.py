"""DTC: the labels of a network must agree with the signed distances that it regresses.

Luo and others, AAAI 2021.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from medssl.core.options import option
from medssl.methods.facts import MethodFacts, coefficients_of
from medssl.methods.method import Schedule
from medssl.methods.parts import (
    CountsSteps,
    SideHeads,
    num_classes_of,
    sigmoid_ramp,
    signed_distance_maps,
    with_features,
)
from medssl.methods.scan_method import PretrainedOptions, ScanMethod


@dataclass(frozen=True)
class DTCOptions(PretrainedOptions):
    """What users may choose of DTC."""

    distance_weight: float = option(
        0.3, "weight of the signed distance maps", symbol="$a$", weighs="distances", at_least=0
    )
    consistency_weight: float = option(
        1.0, "weight of the tasks' agreement at the end of its rise", symbol="$w$", weighs="consistency", at_least=0
    )
    ramp_up_share: float = option(1.0, "share of all steps in which consistency_weight rises", at_least=0, at_most=1)
    steepness: float = option(1500.0, "k of sigmoid(-k z), by which distances z become probabilities", at_least=1)


class DTC(CountsSteps, ScanMethod):
    """Segmentation loss and squared error of signed distance maps on labels; on all patches the two tasks agree.

    A distance z stands for the probability sigmoid(-k z) of its structure. At k = 1500 only voxels next to a boundary
    give the distances a gradient; the labels follow everywhere. Chosen here: one map for each structure, a head with
    tanh on the last features.
    """

    Options = DTCOptions
    facts = MethodFacts("DTC", True, 32, coefficients=coefficients_of(DTCOptions))

    def __init__(
        self, network: nn.Module, loss: nn.Module, options: Any = None, schedule: Schedule | None = None
    ) -> None:
        super().__init__(network, loss, options, schedule)
        self.heads = SideHeads(network, {"distances": num_classes_of(network) - 1})

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        image, label = self.labelled_patches(batch)
        images = torch.cat([image, batch["image"][~batch["is_labelled"].bool()]])
        logits, features = with_features(self.network, images)
        distances = self.heads(features, images.shape[2:])["distances"].tanh()
        terms = self.loss(logits[: len(image)], label)
        maps = signed_distance_maps(label, logits.shape[1]).to(distances.dtype)
        on_distances = (distances[: len(image)] - maps).square().mean()
        told = torch.sigmoid(-self.options.steepness * distances)
        consistency = (told - logits.softmax(1)[:, 1:]).square().mean()
        ramp = sigmoid_ramp(self.steps_taken, self.options.ramp_up_share * self.schedule.total_steps)
        weight = self.options.consistency_weight * ramp
        total = terms["loss"] + self.options.distance_weight * on_distances + weight * consistency
        return {**terms, "loss": total, "distances": on_distances, "consistency": consistency}
