"""Labels alone: the lower bound of every semi-supervised method."""

from typing import Any

from torch import Tensor
from torch.nn import functional as F

from medssl.methods.parts import AveragedMethod
from natural_image_ext.networks.classifier import Classifier


class Supervised(AveragedMethod[Classifier]):
    """Cross-entropy on labelled images; no unlabelled one reaches the network, not even its norms."""

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        loss = F.cross_entropy(self.network(batch["image"]), batch["label"])
        return {"loss": loss, "labelled": loss}
