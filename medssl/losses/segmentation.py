"""The supervised segmentation loss of the thesis: cross-entropy plus soft Dice (section 3.3.2)."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from medssl.core.precision import at_least_float32


def soft_dice_loss(probs: Tensor, target: Tensor, weight: Tensor | None = None, smooth: float = 1e-5) -> Tensor:
    """One minus the soft Dice of the foreground channels, averaged over batch and classes.

    probs and target: (B, C, *spatial), channel 0 the background; target one-hot or soft. weight (B, *spatial): what
    each voxel counts.
    """
    dims = tuple(range(2, probs.ndim))
    probs = at_least_float32(probs[:, 1:])  # for sums over a whole patch
    target = target[:, 1:].to(probs.dtype)
    overlap, size = probs * target, probs + target
    if weight is not None:
        counts = weight.unsqueeze(1).to(probs.dtype)
        overlap, size = counts * overlap, counts * size
    overlap, size = overlap.sum(dims), size.sum(dims)
    return (1 - (2 * overlap + smooth) / (size + smooth)).mean()


def one_hot(label: Tensor, num_classes: int) -> Tensor:
    """(B, 1, *spatial) class ids to (B, num_classes, *spatial) booleans."""
    classes = torch.arange(num_classes, device=label.device)
    return label == classes.view(1, -1, *[1] * (label.ndim - 2))


class DiceCE(nn.Module):
    """Weighted cross-entropy and Dice on logits: beta_1 = 1.0 and beta_2 = 2.0 in the thesis.

    Takes logits (B, C, *spatial) and either class ids (B, 1, *spatial) or soft labels (B, C, *spatial), where the
    cross-entropy is taken against the soft distribution; and, if voxels do not all count the same, their weights
    (B, *spatial). Returns the terms by name, `loss` their weighted sum.
    """

    def __init__(self, ce_weight: float = 1.0, dice_weight: float = 2.0) -> None:
        super().__init__()
        self.ce_weight, self.dice_weight = ce_weight, dice_weight

    def forward(self, logits: Tensor, target: Tensor, weight: Tensor | None = None) -> dict[str, Tensor]:
        num_classes = logits.shape[1]
        logits = at_least_float32(logits)
        is_soft = target.shape[1] == num_classes and num_classes > 1
        soft = target if is_soft else one_hot(target, num_classes)
        wanted = target.to(logits.dtype) if is_soft else target.squeeze(1).long()
        if weight is None:
            ce = F.cross_entropy(logits, wanted)
        else:
            ce = (weight * F.cross_entropy(logits, wanted, reduction="none")).sum() / weight.sum().clamp_min(1e-5)
        dice = soft_dice_loss(torch.softmax(logits, dim=1), soft, weight)
        return {"loss": self.ce_weight * ce + self.dice_weight * dice, "ce": ce, "dice": dice}
