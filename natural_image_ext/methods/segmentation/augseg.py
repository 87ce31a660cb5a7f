"""AugSeg: Mean Teacher with hard labels of confident pixels; its strength is how images are augmented and mixed."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from medssl.methods.parts import confidence_mask
from natural_image_ext.methods.segmentation.step import Learned, Taught, TeacherStudent
from natural_image_ext.methods.segmentation.warmed_average import norm_statistics, warmed_averaging
from natural_image_ext.networks.class_banks import IGNORED
from natural_image_ext.networks.segmentation import SegmentationNetwork


class AugSeg(TeacherStudent):
    """Cross-entropy on pixels whose confidence reaches `confidence`, averaged over all pixels.

    Used with strong views of `SceneViews(strong="augseg")` and `AdaptiveCutMix`. The teacher is at first the plain mean
    of the student's weights, then their moving average; the statistics of its batch norms are averages alike.
    """

    def __init__(
        self, network: SegmentationNetwork, *, confidence: float = 0.95, ema_decay: float = 0.999, **shared: Any
    ) -> None:
        super().__init__(network, ema_decay=ema_decay, **shared)
        self.confidence = confidence
        self.follow = warmed_averaging(ema_decay)
        self.average.multi_avg_fn = self.follow

    def unlabelled_loss(self, learned: Learned, taught: Taught, batch: dict[str, Any]) -> Tensor:
        loss_of_pixels = F.cross_entropy(learned.unlabelled, taught.labels, ignore_index=IGNORED, reduction="none")
        return (loss_of_pixels * confidence_mask(taught.probs, self.confidence)).mean()

    @torch.no_grad()
    def after_step(self) -> None:
        """The teacher follows the student, with its batch norms, which a plain average takes from the student."""
        updates = int(self.average.n_averaged)
        means = [statistic.clone() for statistic in norm_statistics(self.averaged)]
        super().after_step()
        self.follow(means, norm_statistics(self.network), updates)
        for statistic, mean in zip(norm_statistics(self.averaged), means, strict=True):
            statistic.copy_(mean)
