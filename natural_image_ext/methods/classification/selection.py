"""Which unlabelled samples are learned from: confidence, uncertainty, curriculum, alignment."""

from dataclasses import dataclass

import ignite.distributed as idist
import torch
from torch import Tensor, nn

from medssl.methods.parts import confidence_mask

UNUSED = -1


@dataclass(frozen=True)
class Selected:
    """Pseudo-labels (N,), which of them are accepted (N,) bool, and the probabilities (N, C) they were taken from."""

    labels: Tensor
    accepted: Tensor
    probs: Tensor


class Selection(nn.Module):
    """Accepts a sample whose highest probability reaches `confidence` and whose uncertainty is at most `uncertainty`.

    With `num_unlabelled` samples given, the curriculum of FlexMatch lowers the confidence asked of classes that are
    learned less well; the last confident label of every sample is a buffer, so it is saved and resumed. `align` divides
    the probabilities by their mean over the batch (distribution alignment) before labels are taken.
    """

    last_labels: Tensor

    def __init__(
        self,
        num_classes: int,
        confidence: float = 0.95,
        uncertainty: float | None = None,
        num_unlabelled: int | None = None,
        align: bool = False,
    ) -> None:
        super().__init__()
        self.num_classes, self.confidence, self.uncertainty, self.align = num_classes, confidence, uncertainty, align
        self.has_curriculum = num_unlabelled is not None
        self.register_buffer("last_labels", torch.full((num_unlabelled or 0,), UNUSED))

    @torch.no_grad()
    def forward(self, probs: Tensor, uncertainty: Tensor | None = None, index: Tensor | None = None) -> Selected:
        """probs (N, C); uncertainty (N,); index (N,): which unlabelled sample each row is (for the curriculum)."""
        probs = aligned(probs) if self.align else probs
        labels = probs.max(-1).indices
        certain = torch.ones_like(labels, dtype=torch.bool)
        if self.uncertainty is not None:
            if uncertainty is None:
                raise ValueError("an uncertainty threshold is set, but no uncertainty is given")
            certain = uncertainty <= self.uncertainty
        accepted = certain & confidence_mask(probs, self.thresholds()[labels], dim=-1)
        if self.has_curriculum:
            if index is None:
                raise ValueError("the curriculum needs the index of every unlabelled sample")
            self._remember(index, labels, certain & confidence_mask(probs, self.confidence, dim=-1))
        return Selected(labels, accepted, probs)

    def thresholds(self) -> Tensor:
        """The confidence asked of every class, (C,)."""
        full = torch.full((self.num_classes,), self.confidence, device=self.last_labels.device)
        if not self.has_curriculum:
            return full
        counts = torch.bincount(self.last_labels + 1, minlength=self.num_classes + 1)
        unused, learned = counts[0], counts[1:]
        status = learned / torch.maximum(learned.max(), unused).clamp_min(1)
        return full * convex(status)

    def _remember(self, index: Tensor, labels: Tensor, confident: Tensor) -> None:
        """Store confident labels, those of all processes: every process has the same curriculum."""
        rows = torch.stack([index, torch.where(confident, labels, torch.full_like(labels, UNUSED))], dim=1)
        rows = idist.all_gather(rows) if idist.get_world_size() > 1 else rows  # type: ignore[assignment]
        rows = rows[rows[:, 1] != UNUSED]
        self.last_labels[rows[:, 0]] = rows[:, 1]


def convex(status: Tensor) -> Tensor:
    """FlexMatch's mapping x / (2 - x) of a class's learning status in [0, 1]."""
    return status / (2 - status)


def aligned(probs: Tensor) -> Tensor:
    """Probabilities (N, C) divided by their mean over N, rows summing to 1 again."""
    scaled = probs / probs.mean(0).clamp_min(1e-8)
    return scaled / scaled.sum(-1, keepdim=True)
