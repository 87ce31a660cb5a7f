"""U2PL: sure pixels are learned as labels, unsure ones as examples of what they surely are not."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from medssl.methods.parts import linear_ramp
from medssl.uncertainty.maps import entropy_nats
from natural_image_ext.methods.segmentation.step import Learned, Taught, TeacherStudent, labelled_loss
from natural_image_ext.networks.class_banks import IGNORED, ClassBanks
from natural_image_ext.networks.np_seg_head import fitted
from natural_image_ext.networks.segmentation import SegmentationNetwork


class U2PL(TeacherStudent):
    """Cross-entropy on reliable pixels plus a contrast of pixel representations against memories of negatives.

    Unreliable are the pixels with the highest entropy: a share `unreliable` at first, none after `total_steps`. A pixel
    is a negative of class c if c is an unlikely class of it: of unlabelled ones the unreliable where c ranks from
    `ranks[0]` up to `ranks[1]`, of labelled ones those of another label where c ranks above `ranks[0]`. Anchors of c
    are `queries` pixels of it with probability above `anchor`; their positive is the mean representation of c. Other
    than in the released code the representations of positives and negatives are the student's own, without gradient.
    """

    def __init__(
        self,
        network: SegmentationNetwork,
        *,
        num_classes: int,
        total_steps: int = 1,
        unreliable: float = 0.2,
        contrast_weight: float = 1.0,
        queries: int = 256,
        negatives: int = 50,
        temperature: float = 0.5,
        ranks: tuple[int, int] = (3, 20),
        anchor: float = 0.3,
        dimension: int = 256,
        memory: int = 30_000,
        **shared: Any,
    ) -> None:
        super().__init__(network, **shared)
        self.num_classes, self.total_steps, self.unreliable = num_classes, total_steps, unreliable
        self.contrast_weight, self.queries, self.negatives = contrast_weight, queries, negatives
        self.temperature, self.ranks, self.anchor = temperature, ranks, anchor
        self.projection = nn.Sequential(
            nn.Conv2d(network.channels, dimension, 1), nn.ReLU(), nn.Conv2d(dimension, dimension, 1)
        ).to(next(network.parameters()).device)
        self.memory = ClassBanks(num_classes, memory, dimension, most=queries, zeros_first=False)

    def unlabelled_loss(self, learned: Learned, taught: Taught, batch: dict[str, Any]) -> Tensor:
        entropy = entropy_nats(taught.probs, dim=1)
        counted = entropy[taught.valid].float()
        limit = torch.quantile(counted[:: _stride(counted)], 1 - self.share_now()) if len(counted) else 0.0
        is_reliable = (entropy <= limit) & taught.valid
        labels = torch.where(is_reliable, taught.labels, IGNORED)
        crossed = labelled_loss(learned.unlabelled, labels) * taught.valid.sum() / is_reliable.sum().clamp_min(1)
        return crossed + self.contrast_weight * self.contrast(learned, taught, is_reliable, batch["label"])

    def share_now(self) -> float:
        """The share of pixels that is unreliable at this step."""
        return self.unreliable * (1 - linear_ramp(self.steps_taken, self.total_steps))

    def contrast(self, learned: Learned, taught: Taught, is_reliable: Tensor, labels: Tensor) -> Tensor:
        """Mean over classes of the contrast of their anchors, 0 where no class has any."""
        vectors = F.normalize(self.projection(learned.features), dim=1)
        fixed, size = vectors.detach(), vectors.shape[2:]
        probs = torch.cat([learned.labelled.detach().softmax(1), taught.probs])
        probs = F.interpolate(probs, size, mode="bilinear", align_corners=True)
        known = fitted(labels, fixed)
        pseudo, sure = fitted(taught.labels, fixed), fitted(is_reliable.long(), fixed).bool()
        unsure = torch.cat([torch.zeros_like(known, dtype=torch.bool), ~sure & (pseudo != IGNORED)])
        classes = torch.cat([known, torch.where(sure, pseudo, IGNORED)])
        is_labelled = torch.arange(len(classes), device=classes.device)[:, None, None] < len(known)
        rank = probs.argsort(dim=1, descending=True).argsort(dim=1)  # 0 for the most likely class
        contrasts = [0 * vectors.sum()]  # distributed training wants a gradient of the projection at every step
        for label in range(self.num_classes):
            place = rank[:, label]
            known_other = is_labelled & (classes != label) & (classes != IGNORED) & (place < self.ranks[0])
            unlikely = unsure & (place >= self.ranks[0]) & (place < self.ranks[1])
            self.memory.write(fixed, torch.where(known_other | unlikely, label, IGNORED))
            members = classes == label
            anchors = members & (probs[:, label] > self.anchor)
            if anchors.any() and int(self.memory.counts[label]) > 0:
                positive = F.normalize(fixed.movedim(1, -1)[members].mean(0), dim=0)
                contrasts.append(self._info_nce(vectors.movedim(1, -1)[anchors], positive, label))
        return torch.stack(contrasts).sum() / max(1, len(contrasts) - 1)

    def _info_nce(self, anchors: Tensor, positive: Tensor, label: int) -> Tensor:
        """Cross-entropy of telling the positive from `negatives` of the memory, mean over drawn anchors."""
        anchors = anchors[torch.randperm(len(anchors), device=anchors.device)[: self.queries]]
        places = torch.randint(0, int(self.memory.counts[label]), (len(anchors), self.negatives), device=anchors.device)
        others = self.memory.rows[label][places].to(anchors.dtype)
        scores = torch.cat([(anchors @ positive).unsqueeze(1), torch.einsum("nd,nkd->nk", anchors, others)], dim=1)
        return F.cross_entropy(scores / self.temperature, scores.new_zeros(len(scores), dtype=torch.long))


def _stride(maps: Tensor, most: int = 1_000_000) -> int:
    """Every how manieth value is looked at: torch.quantile takes 16 million at most, and a million tells as much."""
    return max(1, maps.numel() // most)
