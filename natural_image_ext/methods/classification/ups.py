"""UPS in the shared loop, the thesis' probabilistic baseline: uncertainty from Monte Carlo dropout."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from medssl.networks.mc_dropout import mc_dropout
from natural_image_ext.methods.classification.selection import Selected
from natural_image_ext.methods.classification.step import Opinion, SemiSupervisedStep, ViewFeatures


class UPS(SemiSupervisedStep):
    """Weak views are labelled by the mean of `samples` passes with dropout; their uncertainty is the deviation of it.

    A sample is accepted by its confidence and by the standard deviation of its class (`Selection(uncertainty=0.05)`);
    classes that are surely wrong, probability and deviation below `negative_confidence` and `negative_deviation`, are
    learned from too: minus log(1 - p), averaged over such classes of a sample. The most likely class is never one.
    """

    def __init__(
        self,
        *args: Any,
        samples: int = 10,
        negative_confidence: float = 0.05,
        negative_deviation: float = 0.005,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.samples = samples
        self.negative_confidence, self.negative_deviation = negative_confidence, negative_deviation

    def predict(self, images: Tensor, features: Tensor) -> Opinion:
        with mc_dropout(self.network):
            draws = torch.stack([torch.softmax(self.network(images), dim=-1) for _ in range(self.samples)])
        probs, deviation = draws.mean(0), draws.std(0)
        return Opinion(probs, deviation.gather(1, probs.argmax(-1, keepdim=True)).squeeze(1), deviation)

    def losses(self, views: ViewFeatures, selected: Selected, opinion: Opinion) -> dict[str, Tensor]:
        labelled = F.cross_entropy(self.network.head(views.labelled), views.labels)
        logits = self.network.head(views.strong)
        positive = (F.cross_entropy(logits, selected.labels, reduction="none") * selected.accepted).mean()
        return {"labelled": labelled, "unlabelled": positive + self._negative(logits, selected, opinion)}

    def _negative(self, logits: Tensor, selected: Selected, opinion: Opinion) -> Tensor:
        """Mean over all samples of the mean over a sample's surely wrong classes; zero for one without any."""
        wrong = (selected.probs < self.negative_confidence) & (opinion.deviation < self.negative_deviation)
        wrong = wrong & (F.one_hot(selected.labels, logits.shape[-1]) == 0)
        log_not = torch.log1p(-torch.softmax(logits, dim=-1).clamp_max(1 - 1e-6))
        return -((log_not * wrong).sum(-1) / wrong.sum(-1).clamp_min(1)).mean()
