"""FixMatch, and with a curriculum FlexMatch: the strong view learns the confident label of the weak one."""

from torch import Tensor
from torch.nn import functional as F

from natural_image_ext.methods.classification.selection import Selected
from natural_image_ext.methods.classification.step import Opinion, SemiSupervisedStep, ViewFeatures


class FixMatch(SemiSupervisedStep):
    """Cross-entropy on labelled images and on accepted pseudo-labels, the latter averaged over all unlabelled images.

    FlexMatch is this with `Selection(num_unlabelled=...)`.
    """

    def losses(self, views: ViewFeatures, selected: Selected, opinion: Opinion) -> dict[str, Tensor]:
        labelled = F.cross_entropy(self.network.head(views.labelled), views.labels)
        each = F.cross_entropy(self.network.head(views.strong), selected.labels, reduction="none")
        return {"labelled": labelled, "unlabelled": (each * selected.accepted).mean()}
