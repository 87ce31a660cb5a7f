"""AugSeg: Mean Teacher with hard labels of confident pixels; its strength is how images are augmented and mixed."""

from typing import Any

from torch import Tensor
from torch.nn import functional as F

from medssl.methods.parts import confidence_mask
from natural_image_ext.methods.segmentation.step import Learned, Taught, TeacherStudent
from natural_image_ext.networks.class_banks import IGNORED
from natural_image_ext.networks.segmentation import SegmentationNetwork


class AugSeg(TeacherStudent):
    """Cross-entropy on pixels whose confidence reaches `confidence`, averaged over all pixels.

    Used with strong views of `SceneViews(strong="augseg")` and `AdaptiveCutMix`.
    """

    def __init__(self, network: SegmentationNetwork, *, confidence: float = 0.95, **shared: Any) -> None:
        super().__init__(network, **shared)
        self.confidence = confidence

    def unlabelled_loss(self, learned: Learned, taught: Taught, batch: dict[str, Any]) -> Tensor:
        loss_of_pixels = F.cross_entropy(learned.unlabelled, taught.labels, ignore_index=IGNORED, reduction="none")
        return (loss_of_pixels * confidence_mask(taught.probs, self.confidence)).mean()
