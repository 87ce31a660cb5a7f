"""NP-Match (thesis, chapter 4): FixMatch with a neural process in place of the classifier."""

from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from medssl.core.errors import ConfigError
from medssl.uncertainty.maps import entropy_nats
from natural_image_ext.losses.divergences import gaussian_kl, skew_geometric_js, uncertainty_alpha
from natural_image_ext.methods.classification.selection import Selected
from natural_image_ext.methods.classification.step import Opinion, SemiSupervisedStep, ViewFeatures
from natural_image_ext.networks.np_head import NPHead, NPOutput

Divergence = Literal["kl", "js", "dual_js"]
DIVERGENCES: dict[str, str] = {"kl": "KL", "js": "JS", "dual_js": "dual JS"}


class NPMatch(SemiSupervisedStep):
    """Labelled images are the context; they, and then the accepted strong views, are the target points.

    Cross-entropies are means over points and latent vectors. The divergence between the latents of context and target
    points, `divergence_weight` (beta) times its sum over the dimensions, is the KL, or the skew-geometric JS guided by
    the uncertainties, or its dual form. The network's head is an `NPHead`.
    """

    def __init__(
        self, *args: Any, divergence: Divergence = "js", divergence_weight: float = 0.01, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        if divergence not in DIVERGENCES:
            raise ConfigError(f"divergence '{divergence}' is unknown. Known: {', '.join(DIVERGENCES)}.")
        self.divergence, self.divergence_weight = divergence, divergence_weight

    @property
    def head(self) -> NPHead:
        return self.network.head  # type: ignore[return-value]

    def predict(self, images: Tensor, features: Tensor) -> Opinion:
        probs = self.head(features).probs
        return Opinion(probs, entropy_nats(probs))

    def losses(self, views: ViewFeatures, selected: Selected, opinion: Opinion) -> dict[str, Tensor]:
        classes = self.head.classifier.out_features
        labels = F.one_hot(views.labels, classes).to(views.labelled.dtype)
        context = self.head.condition(views.labelled, labels, views.labelled, labels)
        terms = {"labelled": _cross_entropy(context.logits, views.labels)}
        terms["unlabelled"] = terms["divergence"] = torch.zeros_like(terms["labelled"])
        said = [context.target]
        if selected.accepted.any():
            chosen, pseudo = views.strong[selected.accepted], selected.labels[selected.accepted]
            target = self.head.condition(views.labelled, labels, chosen, F.one_hot(pseudo, classes).to(chosen.dtype))
            terms["unlabelled"] = _cross_entropy(target.logits, pseudo)
            terms["divergence"] = self.divergence_weight * self._divergence(context, target)
            said.append(target.target)
        if self.training:
            self.head.remember(context.context, torch.cat(said))
        return terms

    def _divergence(self, context: NPOutput, target: NPOutput) -> Tensor:
        latents = (context.mean, context.variance, target.mean, target.variance)
        if self.divergence == "kl":
            return gaussian_kl(target.mean, target.variance, context.mean, context.variance)
        uncertainties = (entropy_nats(output.probs) for output in (context, target))
        return skew_geometric_js(*latents, uncertainty_alpha(*uncertainties), dual=self.divergence == "dual_js")


def _cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean over T and N of logits (T, N, C) against labels (N,)."""
    return F.cross_entropy(logits.flatten(0, 1), labels.repeat(len(logits)))
