"""UniMatch in 3-D: confident labels of the weak view teach two strong views and a view with dropped features.

Yang and others, CVPR 2023.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from medssl.core.options import option
from medssl.methods.facts import MethodFacts, coefficients_of
from medssl.methods.fixmatch import FixMatchOptions
from medssl.methods.parts import (
    confidence_mask,
    dropped_features,
    noisy,
    pasted_alike,
    random_boxes,
    teacher_probs,
)
from medssl.methods.scan_method import ScanMethod

CONTRAST, BRIGHTNESS = 0.2, 0.1  # how far the second strong view may be from the first one
NOISE, MOST_NOISE = 0.05, 0.1


@dataclass(frozen=True)
class UniMatchOptions(FixMatchOptions):
    """What users may choose of UniMatch."""

    feature_dropout: float = option(
        0.5, "share of the channels that are dropped of the features", at_least=0, at_most=0.9
    )


class UniMatch(ScanMethod):
    """Segmentation loss on labels, plus that on confident voxels: a quarter for each strong view, a half for features.

    The network labels the weak view without dropout. It learns these labels on two strong views, each with boxes of
    other patches, and on the weak view with whole channels dropped. Chosen here: the second strong view is the first
    one with contrast, brightness and noise drawn once more; features are the inputs of the last convolution, since the
    encoder of any network cannot be told; losses are those of `fixmatch`, scaled by the share of confident voxels.
    """

    Options = UniMatchOptions
    facts = MethodFacts("UniMatch", True, 34, ("weak", "strong"), coefficients_of(UniMatchOptions))

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        terms = self.labelled_terms(batch)
        unlabelled = ~batch["is_labelled"].bool()
        weak, strong = batch["image"][unlabelled], batch["strong"][unlabelled]
        probs = teacher_probs(self.network, weak)
        labels, counts = probs.argmax(1, keepdim=True), confidence_mask(probs, self.options.threshold)
        first, second = (self.loss_of_view(view, labels, counts) for view in (strong, changed_again(strong)))
        with dropped_features(self.network, self.options.feature_dropout):
            dropped = self.scaled_loss(self.network(weak), labels, counts)
        unsupervised = 0.25 * first + 0.25 * second + 0.5 * dropped
        total = terms["loss"] + self.options.unlabelled_weight * unsupervised
        records = {"first_view": first, "second_view": second, "dropped_features": dropped}
        return {**terms, "loss": total, **records, "confident": counts.to(total.dtype).mean()}

    def loss_of_view(self, view: Tensor, labels: Tensor, counts: Tensor) -> Tensor:
        """The loss on a strong view, with boxes of its own where `cutmix` asks for them."""
        if self.options.cutmix and len(view) > 1:
            masks = random_boxes(len(view), view.shape[2:], 0.02, 0.4, view.device)
            own = (view, labels, counts)
            view, labels, counts = pasted_alike(own, [part.roll(1, 0) for part in own], masks)
        return self.scaled_loss(self.network(view), labels, counts)

    def scaled_loss(self, logits: Tensor, labels: Tensor, counts: Tensor) -> Tensor:
        """The loss over the voxels that count, times their share."""
        weight = counts.to(logits.dtype)
        return self.loss(logits, labels, weight)["loss"] * weight.mean()


def changed_again(images: Tensor) -> Tensor:
    """Images (B, channels, *spatial) with contrast, brightness and noise drawn for each of them."""
    shape = (len(images), *[1] * (images.ndim - 1))
    gain, shift = (2 * torch.rand(shape, device=images.device, dtype=images.dtype) - 1 for _ in range(2))
    return noisy(images * (1 + CONTRAST * gain) + BRIGHTNESS * shift, NOISE, MOST_NOISE)
