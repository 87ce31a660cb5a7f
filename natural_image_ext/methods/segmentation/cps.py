"""Cross pseudo supervision: two networks with different beginnings, each learns what the other one sees."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from medssl.methods.parts import AveragedMethod, CountsSteps, switched_on, teacher_probs
from natural_image_ext.methods.segmentation.cutmix import CutMix
from natural_image_ext.methods.segmentation.step import Learned, Taught, labelled_loss, learn, opinion_on
from natural_image_ext.networks.segmentation import SegmentationNetwork


class CPS(CountsSteps, AveragedMethod[SegmentationNetwork]):
    """Cross-entropy on labels, and on the other network's hard labels of unlabelled and labelled images.

    Unlabelled images are mixed by CutMix of three boxes, and so are the labels the other network gave to them.
    The first network is evaluated, as it is: the moving average has no part in the training. `second` builds the other.
    In the first `warm_up` steps labels alone count.
    """

    def __init__(
        self,
        network: SegmentationNetwork,
        second: Callable[[], SegmentationNetwork],
        unlabelled_weight: float = 1.0,
        kl_weight: float = 0.005,
        ema_decay: float = 0.0,
        mixer: CutMix | None = None,
        warm_up: int = 0,
        dice_weight: float = 0.0,
    ) -> None:
        super().__init__(network, ema_decay=ema_decay)
        self.warm_up, self.dice_weight = warm_up, dice_weight
        self.other = second().to(next(network.parameters()).device)
        self.unlabelled_weight, self.kl_weight = unlabelled_weight, kl_weight
        self.mixer = CutMix(boxes=3) if mixer is None else mixer

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        images, labels, weak = batch["image"], batch["label"], batch["weak"]
        opinion_of_first = opinion_on(batch, teacher_probs(self.network, weak))
        opinion_of_second = opinion_on(batch, teacher_probs(self.other, weak))
        # both see the same mixed images: one draw of boxes for both
        state = torch.random.get_rng_state()
        taught_by_first = self.mixer(opinion_of_first, batch)
        torch.random.set_rng_state(state)
        taught_by_second = self.mixer(opinion_of_second, batch)
        first = learn(self.network, images, labels, taught_by_second)
        second = learn(self.other, images, labels, taught_by_first)
        labelled_of_first = labelled_loss(first.labelled, labels, self.dice_weight)
        labelled = labelled_of_first + labelled_loss(second.labelled, labels, self.dice_weight)
        crossed_of_first = _crossed_loss(first, taught_by_second, second)
        crossed = crossed_of_first + _crossed_loss(second, taught_by_first, first)
        kl = first.kl + second.kl
        weight = self.unlabelled_weight * switched_on(self.steps_taken, self.warm_up)
        loss = labelled + weight * crossed + self.kl_weight * kl
        confidence = opinion_of_first.confidence.mean()
        return {"loss": loss, "labelled": labelled, "unlabelled": crossed, "kl": kl, "confidence": confidence}


def _crossed_loss(learned: Learned, taught: Taught, other: Learned) -> Tensor:
    """Cross-entropy on the other network's hard labels: of mixed unlabelled images, and of the labelled ones."""
    on_unlabelled = labelled_loss(learned.unlabelled, taught.labels)
    return on_unlabelled + F.cross_entropy(learned.labelled, other.labelled.detach().argmax(1))
