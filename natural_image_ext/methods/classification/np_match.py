"""NP-Match (thesis, chapter 4): FixMatch with a neural process in place of the classifier."""

from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from medssl.core.errors import ConfigError
from natural_image_ext.losses.divergences import gaussian_kl, skew_geometric_js, uncertainty_alpha
from natural_image_ext.methods.classification.selection import Selected
from natural_image_ext.methods.classification.step import Opinion, SemiSupervisedStep, ViewFeatures
from natural_image_ext.networks.np_head import NPHead, NPOutput

Divergence = Literal["kl", "js", "dual_js"]
Normalise = Literal["accepted", "all"]
NORMALISE = ("accepted", "all")
DIVERGENCES: dict[str, str] = {"kl": "KL", "js": "JS", "dual_js": "dual JS"}


class NPMatch(SemiSupervisedStep):
    """Labelled images are the context; they, and then the accepted strong views, are the target points.

    Cross-entropies are means over points and latent vectors. The divergence between the latents of context and target
    points, `divergence_weight` (beta) times its sum over the dimensions, is the KL, or the skew-geometric JS guided by
    the uncertainties, or its dual form. normalise: the loss on pseudo-labels is the mean over the "accepted" views, as
    in the thesis, or their sum divided by "all" views, as in FixMatch. The network's head is an `NPHead`.
    """

    def __init__(
        self,
        *args: Any,
        divergence: Divergence = "js",
        divergence_weight: float = 0.01,
        normalise: Normalise = "accepted",
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        if normalise not in NORMALISE:
            raise ConfigError(f"normalise '{normalise}' is unknown. Known: {', '.join(NORMALISE)}.")
        self.normalise = normalise
        if divergence not in DIVERGENCES:
            raise ConfigError(f"divergence '{divergence}' is unknown. Known: {', '.join(DIVERGENCES)}.")
        self.divergence, self.divergence_weight = divergence, divergence_weight

    @property
    def head(self) -> NPHead:
        return self.network.head  # type: ignore[return-value]

    def predict(self, images: Tensor, features: Tensor) -> Opinion:
        output = self.head(features)
        return Opinion(output.probs, output.uncertainty)

    def losses(self, views: ViewFeatures, selected: Selected, opinion: Opinion) -> dict[str, Tensor]:
        classes = self.head.classifier.out_features
        labels = F.one_hot(views.labels, classes).to(views.labelled.dtype)
        context = self.head.condition(views.labelled, labels, views.labelled, labels)
        terms = {"labelled": _cross_entropy(context, views.labels)}
        terms["unlabelled"] = terms["divergence"] = torch.zeros_like(terms["labelled"])
        said = [context.target]
        if selected.accepted.any():
            chosen, pseudo = views.strong[selected.accepted], selected.labels[selected.accepted]
            target = self.head.condition(views.labelled, labels, chosen, F.one_hot(pseudo, classes).to(chosen.dtype))
            share = 1.0 if self.normalise == "accepted" else len(chosen) / len(views.strong)
            terms["unlabelled"] = share * _cross_entropy(target, pseudo)
            terms["divergence"] = self.divergence_weight * self._divergence(context, target)
            said.append(target.target)
        if self.training:
            self.head.remember(context.context, torch.cat(said))
        return terms

    def _divergence(self, context: NPOutput, target: NPOutput) -> Tensor:
        latents = (context.mean, context.variance, target.mean, target.variance)
        if self.divergence == "kl":
            return gaussian_kl(target.mean, target.variance, context.mean, context.variance)
        alpha = uncertainty_alpha(context.uncertainty, target.uncertainty)
        return skew_geometric_js(*latents, alpha, dual=self.divergence == "dual_js")


def _cross_entropy(output: NPOutput, labels: Tensor) -> Tensor:
    """Mean over T and N of the logits (T, N, C) against labels (N,); with sigmoid the sum over the classes of binary
    cross-entropies."""
    logits = output.logits.flatten(0, 1)
    classes = labels.repeat(len(output.logits))
    if output.activation == "sigmoid":
        targets = F.one_hot(classes, logits.shape[-1]).to(logits.dtype)
        return F.binary_cross_entropy_with_logits(logits, targets, reduction="sum") / len(logits)
    return F.cross_entropy(logits, classes)
