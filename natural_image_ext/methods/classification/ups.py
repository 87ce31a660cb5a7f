"""UPS in the shared loop, the thesis' probabilistic baseline: uncertainty from Monte Carlo dropout."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from medssl.core.errors import ConfigError
from medssl.networks.mc_dropout import mc_dropout
from natural_image_ext.methods.classification.selection import Selected
from natural_image_ext.methods.classification.step import Opinion, SemiSupervisedStep, ViewFeatures


class UPS(SemiSupervisedStep):
    """Weak views are labelled by the mean of `samples` passes with dropout; their uncertainty is the deviation of it.

    A sample is accepted by its confidence and by the standard deviation of its class (`Selection(uncertainty=0.05)`);
    classes that are surely wrong, probability and deviation at `negative_temperature` below `negative_confidence` and
    `negative_deviation`, are learned from too: minus log(1 - p), averaged over such classes of a sample. The most
    likely class is never one.
    """

    def __init__(
        self,
        *args: Any,
        samples: int = 10,
        negative_confidence: float = 0.05,
        negative_deviation: float = 0.005,
        negative_temperature: float = 2.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        if samples < 2:
            raise ConfigError(f"samples {samples}: UPS needs at least 2 passes, one has no deviation.")
        self.samples, self.negative_temperature = samples, negative_temperature
        self.negative_confidence, self.negative_deviation = negative_confidence, negative_deviation

    def predict(self, images: Tensor, features: Tensor) -> Opinion:
        with mc_dropout(self.network):
            logits = torch.stack([self.network(images) for _ in range(self.samples)])
        draws, softer = logits.softmax(-1), (logits / self.negative_temperature).softmax(-1)
        probs, best = draws.mean(0), draws.mean(0).argmax(-1, keepdim=True)
        wrong = (softer.mean(0) < self.negative_confidence) & (softer.std(0) < self.negative_deviation)
        return Opinion(probs, draws.std(0).gather(1, best).squeeze(1), wrong.scatter(1, best, False))

    def losses(self, views: ViewFeatures, selected: Selected, opinion: Opinion) -> dict[str, Tensor]:
        labelled = F.cross_entropy(self.network.head(views.labelled), views.labels)
        logits = self.network.head(views.strong)
        positive = (F.cross_entropy(logits, selected.labels, reduction="none") * selected.accepted).mean()
        return {"labelled": labelled, "unlabelled": positive + negative_loss(logits, opinion.wrong)}


def negative_loss(logits: Tensor, wrong: Tensor) -> Tensor:
    """Mean over all samples of the mean over a sample's wrong classes (N, C) of -log(1 - p); 0 for one without any."""
    log_not = torch.log1p(-torch.softmax(logits, dim=-1).clamp_max(1 - 1e-6))
    return -((log_not * wrong).sum(-1) / wrong.sum(-1).clamp_min(1)).mean()
