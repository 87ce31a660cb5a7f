"""MixMatch: averaged, sharpened guesses of two weak views, then everything is mixed with everything."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from medssl.methods.parts import AveragedMethod, CountsSteps, linear_ramp
from natural_image_ext.networks.classifier import Classifier


class MixMatch(CountsSteps, AveragedMethod[Classifier]):
    """Cross-entropy on mixed labelled images, squared error of the probabilities on mixed unlabelled ones.

    `weak` and `strong` are two weak views of the unlabelled images here (`Views.two_weak`). The unlabelled weight grows
    to its full value over the first `warm_up` steps. mixing: the parameter of the Beta distribution.
    """

    def __init__(
        self,
        network: Classifier,
        num_classes: int,
        unlabelled_weight: float = 100.0,
        temperature: float = 0.5,
        mixing: float = 0.5,
        warm_up: int = 0,
        ema_decay: float = 0.999,
    ) -> None:
        super().__init__(network, ema_decay=ema_decay)
        self.unlabelled_weight = unlabelled_weight
        self.num_classes, self.temperature, self.mixing, self.warm_up = num_classes, temperature, mixing, warm_up

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        guess = self.guess(batch["weak"], batch["strong"])
        hot = F.one_hot(batch["label"], self.num_classes).to(guess.dtype)
        images = torch.cat([batch["image"], batch["weak"], batch["strong"]])
        images, targets = self.mixed(images, torch.cat([hot, guess, guess]))
        logits = self.network(images)
        number = len(hot)
        terms = {
            "labelled": F.cross_entropy(logits[:number], targets[:number]),
            "unlabelled": F.mse_loss(torch.softmax(logits[number:], dim=-1), targets[number:]),
        }
        loss = terms["labelled"] + self.current_weight() * terms["unlabelled"]
        return {"loss": loss, **terms}

    @torch.no_grad()
    def guess(self, *views: Tensor) -> Tensor:
        """Sharpened mean of the views' probabilities, (N, C)."""
        mean = torch.stack([torch.softmax(self.network(view), dim=-1) for view in views]).mean(0)
        sharp = mean ** (1 / self.temperature)
        return sharp / sharp.sum(-1, keepdim=True)

    def mixed(self, images: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Each image with another one of the batch, itself having the larger share."""
        share = torch.distributions.Beta(self.mixing, self.mixing).sample((len(images),)).to(images)
        share = torch.maximum(share, 1 - share)
        other = torch.randperm(len(images), device=images.device)
        pixels = share.view(-1, *[1] * (images.ndim - 1))
        row = share.unsqueeze(-1)
        return pixels * images + (1 - pixels) * images[other], row * targets + (1 - row) * targets[other]

    def current_weight(self) -> float:
        """The unlabelled weight of this step."""
        return self.unlabelled_weight * linear_ramp(self.steps_taken, self.warm_up)
