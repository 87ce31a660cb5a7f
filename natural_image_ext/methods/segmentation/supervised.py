"""Labels alone: the lower bound of every semi-supervised framework."""

from typing import Any

from torch import Tensor

from medssl.methods.parts import AveragedMethod
from natural_image_ext.methods.segmentation.step import Taught, labelled_loss, learn
from natural_image_ext.networks.segmentation import SegmentationNetwork


class SupervisedScenes(AveragedMethod[SegmentationNetwork]):
    """Cross-entropy on labelled images; no unlabelled one reaches the network, not even its norms."""

    def __init__(
        self,
        network: SegmentationNetwork,
        kl_weight: float = 0.005,
        ema_decay: float = 0.99,
        dice_weight: float = 0.0,
        **unused: Any,
    ) -> None:
        super().__init__(network, ema_decay=ema_decay)
        self.kl_weight, self.dice_weight = kl_weight, dice_weight

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        image, label = batch["image"], batch["label"]
        learned = learn(self.network, image, label, Taught(image[:0], image[:0], label[:0]))
        labelled = labelled_loss(learned.labelled, label, self.dice_weight)
        return {"loss": labelled + self.kl_weight * learned.kl, "labelled": labelled, "kl": learned.kl}
