"""GBDL (thesis, chapter 3): latent representation learning, then the posterior 3D-UNet on generated pseudo-labels."""

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from medssl.networks.lrl import LRL
from medssl.uncertainty.maps import predictive_entropy


class LatentLearning(nn.Module):
    """Stage 1: the losses of LRL on a batch of labelled and unlabelled patches.

    lambda_1 cross-entropy + lambda_2 Dice on labelled patches (`segmentation_loss` has these weights), lambda_3 mean
    squared error of the reconstruction and lambda_4 KL on all. The batch has `image`, `label` and `is_labelled` (B,);
    labels of unlabelled patches are never read. kl: "product" as in the thesis, or the "sum" over the slices.
    Health is logged beside the losses: the mean latent variance, and how much the means differ between slices.
    """

    def __init__(
        self,
        network: LRL,
        segmentation_loss: nn.Module,
        mse_weight: float = 1.0,
        kl_weight: float = 0.005,
        kl: Literal["product", "sum"] = "product",
    ) -> None:
        super().__init__()
        self.network, self.segmentation_loss = network, segmentation_loss
        self.mse_weight, self.kl_weight, self.kl = mse_weight, kl_weight, kl

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        image, labelled = batch["image"], batch["is_labelled"].bool()
        output = self.network(image)
        latent = output.latent
        kl = (latent.product_kl() if self.kl == "product" else latent.sum_kl()).mean()
        terms = {"kl": kl, "latent_variance": latent.trace().mean() / latent.mean.shape[-1]}
        terms["latent_mean_spread"] = latent.mean.std(dim=1, correction=0).mean()
        loss = self.kl_weight * kl
        if output.reconstruction is not None:
            terms["mse"] = F.mse_loss(output.reconstruction, image)
            loss = loss + self.mse_weight * terms["mse"]
        if labelled.any():
            found = self.segmentation_loss(output.logits[labelled], batch["label"][labelled])
            loss = loss + found.pop("loss")
            terms |= found
        return {"loss": loss, **terms}


class PosteriorLearning(nn.Module):
    """Stage 2: the posterior network on true labels and on pseudo-labels that the frozen LRL generates.

    A pseudo-label is the mean of `samples` (M) draws. pseudo: "soft" keeps the probabilities, "hard" their most likely
    class. With `weigh_by_entropy` each unlabelled patch counts by one minus its normalised mean entropy over the draws.
    """

    def __init__(
        self,
        network: nn.Module,
        teacher: LRL,
        segmentation_loss: nn.Module,
        samples: int = 5,
        pseudo: Literal["soft", "hard"] = "soft",
        weigh_by_entropy: bool = False,
    ) -> None:
        super().__init__()
        self.network, self.teacher, self.segmentation_loss = network, teacher, segmentation_loss
        self.samples, self.pseudo, self.weigh_by_entropy = samples, pseudo, weigh_by_entropy
        self.teacher.requires_grad_(False)

    def train(self, mode: bool = True) -> "PosteriorLearning":
        super().train(mode)
        self.teacher.eval()
        return self

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        image, labelled = batch["image"], batch["is_labelled"].bool()
        logits = self.network(image)
        terms: dict[str, Tensor] = {}
        loss = logits.sum() * 0
        if labelled.any():
            found = self.segmentation_loss(logits[labelled], batch["label"][labelled])
            loss = loss + labelled.float().mean() * found.pop("loss")
            terms |= found
        if (~labelled).any():
            target, weight = self._pseudo_labels(image[~labelled])
            found = self.segmentation_loss(logits[~labelled], target)
            loss = loss + (~labelled).float().mean() * weight * found["loss"]
            terms |= {"pseudo_ce": found["ce"], "pseudo_dice": found["dice"], "pseudo_weight": weight}
        return {"loss": loss, **terms}

    @torch.no_grad()
    def _pseudo_labels(self, image: Tensor) -> tuple[Tensor, Tensor]:
        """Targets for the loss, and the weight of the unlabelled part."""
        draws = self.teacher.pseudo_label_samples(image, self.samples)
        probs = draws.mean(0)
        weight = torch.ones((), device=image.device)
        if self.weigh_by_entropy:
            weight = 1 - predictive_entropy(draws).mean() / torch.tensor(float(probs.shape[1])).log2()
        return (probs if self.pseudo == "soft" else probs.argmax(1, keepdim=True)), weight
