"""UDA: the strong view learns the sharpened probabilities of the weak one."""

from typing import Any

from torch import Tensor
from torch.nn import functional as F

from natural_image_ext.methods.classification.selection import Selected
from natural_image_ext.methods.classification.step import Opinion, SemiSupervisedStep, ViewFeatures


class UDA(SemiSupervisedStep):
    """Cross-entropy to soft pseudo-labels, sharpened with a temperature; 0.8 is the usual confidence."""

    def __init__(self, *args: Any, temperature: float = 0.4, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.temperature = temperature

    def losses(self, views: ViewFeatures, selected: Selected, opinion: Opinion) -> dict[str, Tensor]:
        labelled = F.cross_entropy(self.network.head(views.labelled), views.labels)
        sharp = F.softmax(selected.probs.clamp_min(1e-12).log() / self.temperature, dim=-1)
        each = F.cross_entropy(self.network.head(views.strong), sharp, reduction="none")
        return {"labelled": labelled, "unlabelled": (each * selected.accepted).mean()}
