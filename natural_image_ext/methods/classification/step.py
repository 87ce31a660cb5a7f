"""The step all semi-supervised classification methods share: one pass over labelled, weak and strong views."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from medssl.methods.parts import AveragedMethod
from medssl.uncertainty.maps import entropy_nats
from natural_image_ext.methods.classification.selection import Selected, Selection
from natural_image_ext.networks.classifier import Classifier


@dataclass(frozen=True)
class ViewFeatures:
    """Features of the labelled images (with their labels) and of the strongly augmented unlabelled ones."""

    labelled: Tensor
    labels: Tensor
    strong: Tensor


@dataclass(frozen=True)
class Opinion:
    """What the network thinks of the weak views: probabilities (N, C) and uncertainty (N,).

    wrong (N, C), where a method has them: classes that a view surely does not show.
    """

    probs: Tensor
    uncertainty: Tensor
    wrong: Tensor = field(default_factory=lambda: torch.empty(0))


class SemiSupervisedStep(AveragedMethod[Classifier], ABC):
    """Losses of a batch with `image` and `label` (labelled), `weak` and `strong` views and `index` (unlabelled).

    The views pass the backbone as one batch, so that they share their batch statistics. `predict` labels the weak
    views, `selection` decides which of them count, `losses` says what is learned from the strong ones: methods differ
    in these three.
    """

    def __init__(
        self, network: Classifier, selection: Selection, unlabelled_weight: float = 1.0, ema_decay: float = 0.999
    ) -> None:
        super().__init__(network, ema_decay=ema_decay)
        self.selection, self.unlabelled_weight = selection, unlabelled_weight

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        images = torch.cat([batch["image"], batch["weak"], batch["strong"]])
        sizes = [len(batch[name]) for name in ("image", "weak", "strong")]
        labelled, weak, strong = self.network.backbone(images).split(sizes)
        with torch.no_grad():
            opinion = self.predict(batch["weak"], weak.detach())
        selected = self.selection(opinion.probs, opinion.uncertainty, batch.get("index"))
        terms = self.losses(ViewFeatures(labelled, batch["label"], strong), selected, opinion)
        loss = terms["labelled"] + self.unlabelled_weight * terms["unlabelled"] + terms.get("divergence", 0.0)
        return {"loss": loss, **terms, "accepted": selected.accepted.float().mean()}

    def predict(self, images: Tensor, features: Tensor) -> Opinion:
        """The opinion on weak views, given also by their features; its uncertainty is here the entropy in nats."""
        probs = torch.softmax(self.network.head(features), dim=-1)
        return Opinion(probs, entropy_nats(probs))

    @abstractmethod
    def losses(self, views: ViewFeatures, selected: Selected, opinion: Opinion) -> dict[str, Tensor]:
        """`labelled` and `unlabelled`; `divergence` where a method has one."""
