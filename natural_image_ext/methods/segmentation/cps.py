"""Cross pseudo supervision: two networks with different beginnings, each learns what the other one sees."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from medssl.methods.parts import AveragedMethod, CountsSteps, switched_on, teacher_probs
from natural_image_ext.methods.segmentation.cutmix import CutMix
from natural_image_ext.methods.segmentation.step import labelled_loss, learn, opinion_on
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
        pair = (self.network, self.other)
        opinions = [opinion_on(batch, teacher_probs(network, batch["weak"])) for network in pair]
        # both see the same mixed images: one draw of boxes for both
        state = torch.random.get_rng_state()
        mixed = []
        for opinion in opinions:
            torch.random.set_rng_state(state)
            mixed.append(self.mixer(opinion, batch))
        passes = [learn(network, batch["image"], batch["label"], mixed[1 - i]) for i, network in enumerate(pair)]
        labelled = sum(labelled_loss(found.labelled, batch["label"], self.dice_weight) for found in passes)
        crossed = sum(
            labelled_loss(found.unlabelled, mixed[1 - i].labels)
            + F.cross_entropy(found.labelled, passes[1 - i].labelled.detach().argmax(1))
            for i, found in enumerate(passes)
        )
        kl = passes[0].kl + passes[1].kl
        weight = self.unlabelled_weight * switched_on(self.steps_taken, self.warm_up)
        loss = labelled + weight * crossed + self.kl_weight * kl
        confidence = opinions[0].confidence.mean()
        return {"loss": loss, "labelled": labelled, "unlabelled": crossed, "kl": kl, "confidence": confidence}  # type: ignore[dict-item]
