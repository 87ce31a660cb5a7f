"""GBDL (thesis, chapter 3): latent representation learning, then the posterior 3D-UNet on generated pseudo-labels."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from medssl.core.options import option
from medssl.distributions.gaussian import IndependentGaussians, RankOneGaussians
from medssl.methods.facts import MethodFacts, coefficients_of
from medssl.methods.method import Method
from medssl.methods.pseudo_labels import PseudoLabels
from medssl.networks.lrl import LRL, reconstruction_target
from medssl.networks.weights import weights_digest
from medssl.uncertainty.maps import entropy_of


@dataclass(frozen=True)
class GBDLOptions:
    """What users may choose of GBDL's losses: lambda of the first stage, beta of the second (thesis 3.3)."""

    ce_weight: float = option(
        1.0, "stage 1: weight of the cross-entropy", symbol=r"$\lambda_1$", weighs="cross-entropy"
    )
    dice_weight: float = option(2.0, "stage 1: weight of the Dice loss", symbol=r"$\lambda_2$", weighs="Dice")
    mse_weight: float = option(
        1.0,
        "stage 1: weight of the squared error of the reconstruction",
        symbol=r"$\lambda_3$",
        weighs="reconstruction",
    )
    kl_weight: float = option(
        0.005, "stage 1: weight of the KL divergence of the latents", symbol=r"$\lambda_4$", weighs="KL"
    )
    kl: str = option(
        "product",
        "stage 1: KL of the product of the slices' Gaussians, or sum of the slices' KLs",
        choices=("product", "sum"),
    )
    beta_ce: float = option(1.0, "stage 2: weight of the cross-entropy", symbol=r"$\beta_1$", weighs="cross-entropy")
    beta_dice: float = option(2.0, "stage 2: weight of the Dice loss", symbol=r"$\beta_2$", weighs="Dice")
    pseudo_samples: int = option(
        5,
        "stage 2: a pseudo-label is the mean of this many draws",
        symbol="$M$",
        weighs="draws per pseudo-label",
        at_least=1,
    )
    pseudo: str = option(
        "soft",
        "stage 2: pseudo-labels are probabilities (soft) or the most likely class (hard)",
        choices=("soft", "hard"),
    )


class LatentLearning(Method):
    """Stage 1: the losses of LRL on a batch of labelled and unlabelled patches.

    lambda_1 cross-entropy + lambda_2 Dice on labelled patches (`segmentation_loss` has these weights), lambda_3 mean
    squared error of the reconstruction and lambda_4 KL on all. The batch has `image`, `label` and `is_labelled` (B,);
    labels of unlabelled patches are never read. kl: "product" as in the thesis, or the "sum" over the slices.
    Health is logged beside the losses.
    """

    def __init__(
        self,
        network: LRL,
        segmentation_loss: nn.Module,
        mse_weight: float = 1.0,
        kl_weight: float = 0.005,
        kl: Literal["product", "sum"] = "product",
    ) -> None:
        super().__init__(network, segmentation_loss)
        if kl not in ("product", "sum"):
            raise ValueError(f"kl '{kl}' is unknown: product or sum")
        if kl == "sum" and not kl_weight:
            raise ValueError("the kind of KL is chosen, but its weight is 0")
        self.mse_weight, self.kl_weight, self.kl = mse_weight, kl_weight, kl

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        image, labelled = batch["image"], batch["is_labelled"].bool()
        output = self.network(image, labelled)
        terms: dict[str, Tensor] = {}
        loss = output.logits.sum() * 0
        if output.latent is not None:
            terms |= self._latent_terms(output.latent)
            loss = loss + self.kl_weight * terms["kl"]
        if output.reconstruction is not None:
            terms["mse"] = F.mse_loss(output.reconstruction, reconstruction_target(image, output.reconstruction))
            loss = loss + self.mse_weight * terms["mse"]
        if labelled.any():
            segmentation_terms = self.loss(output.logits, batch["label"][labelled])
            loss = loss + segmentation_terms.pop("loss")
            terms |= segmentation_terms
        return {"loss": loss, **terms}

    def _latent_terms(self, latent: RankOneGaussians | IndependentGaussians) -> dict[str, Tensor]:
        """The KL, and the latent's health: variance (mean and extremes of the slices), spread of the means, v.v."""
        variance = latent.trace() / latent.mean.shape[-1]
        terms = {
            "kl": (latent.product_kl() if self.kl == "product" else latent.sum_kl()).mean(),
            "latent_variance": variance.mean(),
            "latent_variance_min": variance.min(),
            "latent_variance_max": variance.max(),
            "latent_mean_spread": latent.mean.std(dim=1, correction=0).mean(),
        }
        if isinstance(latent, RankOneGaussians):
            terms["v_squared"] = latent.v.square().sum(-1).mean()
        return terms

    def get_extra_state(self) -> dict[str, float | str]:
        """The weights of the losses: a checkpoint of other ones is another variant's."""
        return {"mse_weight": self.mse_weight, "kl_weight": self.kl_weight, "kl": self.kl}

    def set_extra_state(self, state: dict[str, float | str]) -> None:
        if state != self.get_extra_state():
            raise ValueError(f"the first stage was trained with {state}, here it has {self.get_extra_state()}")


class PosteriorLearning(Method):
    """Stage 2: the posterior network on true labels and on the pseudo-labels of a frozen teacher (LRL).

    pseudo: "soft" keeps the probabilities, "hard" their most likely class. With `weigh_by_entropy` a voxel of a
    pseudo-label counts by one minus its entropy over the draws, as a share of the largest possible one. The teacher is
    no part of this module's parameters and state: it has its own checkpoint.
    """

    Options = GBDLOptions
    bundle: ClassVar[str] = "gbdl"
    facts = MethodFacts("GBDL", learns_from_unlabelled=True, place=107, coefficients=coefficients_of(GBDLOptions))

    def __init__(
        self,
        network: nn.Module,
        pseudo_labels: PseudoLabels,
        segmentation_loss: nn.Module,
        pseudo: Literal["soft", "hard"] = "soft",
        weigh_by_entropy: bool = False,
    ) -> None:
        super().__init__(network, segmentation_loss)
        if pseudo not in ("soft", "hard"):
            raise ValueError(f"pseudo '{pseudo}' is unknown: soft or hard")
        self.pseudo, self.weigh_by_entropy = pseudo, weigh_by_entropy
        self._frozen = (pseudo_labels,)  # in a tuple it is not registered
        self._digest = ""

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        image, labelled = batch["image"], batch["is_labelled"].bool()
        logits = self.network(image)
        terms: dict[str, Tensor] = {}
        loss = logits.sum() * 0
        if labelled.any():
            segmentation_terms = self.loss(logits[labelled], batch["label"][labelled])
            loss = loss + labelled.float().mean() * segmentation_terms.pop("loss")
            terms |= segmentation_terms
        if (~labelled).any():
            target, weight = self._targets(image[~labelled])
            pseudo_terms = self.loss(logits[~labelled], target, weight)
            loss = loss + (~labelled).float().mean() * pseudo_terms["loss"]
            terms |= {"pseudo_ce": pseudo_terms["ce"], "pseudo_dice": pseudo_terms["dice"]}
            if weight is not None:
                terms["pseudo_weight"] = weight.mean()
        return {"loss": loss, **terms}

    @property
    def teachers(self) -> tuple[nn.Module, ...]:
        return self._frozen

    @torch.no_grad()
    def _targets(self, image: Tensor) -> tuple[Tensor, Tensor | None]:
        """Labels for the loss, and what each voxel counts (None: all the same)."""
        probs = self._frozen[0].eval()(image)
        weight = 1 - entropy_of(probs) / math.log2(probs.shape[1]) if self.weigh_by_entropy else None
        return (probs if self.pseudo == "soft" else probs.argmax(1, keepdim=True)), weight

    def get_extra_state(self) -> dict[str, Any]:
        """Which teacher and which kind of pseudo-labels the network learned from."""
        self._digest = self._digest or weights_digest(self._frozen[0])
        return {"teacher": self._digest, "pseudo": self.pseudo, "weigh_by_entropy": self.weigh_by_entropy}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        if state != self.get_extra_state():
            raise ValueError(f"the second stage learned from {state}, here it has {self.get_extra_state()}")
