"""Bidirectional copy-paste: labelled and unlabelled patches give each other a box, and the loss on the mixtures."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from medssl.methods.parts.boxes import boxes_of_sides, pasted


class Mixtures(NamedTuple):
    """Mixed patches: images (B, channels, *spatial), labels (B, 1, *spatial), is_true (B, *spatial).

    is_true: where a label is a human's; elsewhere it is a pseudo-label.
    """

    images: Tensor
    labels: Tensor
    is_true: Tensor


def mixtures_of(batch: dict[str, Any], pseudo: Tensor, share: float) -> Mixtures:
    """The labelled patches of a batch mixed both ways with the strong views of its unlabelled ones.

    pseudo: labels (B, 1, *spatial) of the unlabelled patches. share: of each side that a box has.
    """
    labelled = batch["is_labelled"].bool()
    masks = boxes_of_sides(max(int(labelled.sum()), len(pseudo)), pseudo.shape[2:], share, pseudo.device)
    true_patches = (batch["image"][labelled], batch["label"][labelled].to(pseudo.dtype))
    return mixed_both_ways(true_patches, (batch["strong"][~labelled], pseudo), masks)


def mixed_both_ways(labelled: Sequence[Tensor], unlabelled: Sequence[Tensor], masks: Tensor) -> Mixtures:
    """Labelled boxes in unlabelled patches, then unlabelled boxes in labelled patches; masks (B, *spatial): the boxes.

    Both give images and labels, the unlabelled ones pseudo-labels. Where there are fewer of one kind, it is taken again
    from its first patch on until both are as many as the masks.
    """
    image, label = (repeated(part, len(masks)) for part in labelled)
    other_image, other_label = (repeated(part, len(masks)) for part in unlabelled)
    images = torch.cat([pasted(other_image, image, masks), pasted(image, other_image, masks)])
    labels = torch.cat([pasted(other_label, label, masks), pasted(label, other_label, masks)])
    return Mixtures(images, labels, torch.cat([masks, ~masks]))


def repeated(rows: Tensor, number: int) -> Tensor:
    """`number` rows: all of them, from the first one on again where there are fewer."""
    return rows if len(rows) == number else rows[torch.arange(number, device=rows.device) % len(rows)]


def mixture_loss(loss: nn.Module, logits: Tensor, mixtures: Mixtures, pseudo_weight: float) -> dict[str, Tensor]:
    """The segmentation loss on true labels plus pseudo_weight times that on pseudo-labels, each over its own voxels."""
    is_true = mixtures.is_true.to(logits.dtype)
    true = loss(logits, mixtures.labels, is_true)["loss"]
    pseudo = loss(logits, mixtures.labels, 1 - is_true)["loss"]
    return {"loss": true + pseudo_weight * pseudo, "true": true, "pseudo": pseudo}
