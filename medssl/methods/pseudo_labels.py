"""Pseudo-labels: the mean of several draws of a frozen teacher."""

from typing import Protocol

import torch
from torch import Tensor, nn


class Teacher(Protocol):
    """What generates pseudo-labels: LRL, or a network that was trained on the labelled cases."""

    def pseudo_label_samples(self, x: Tensor, samples: int) -> Tensor:
        """`samples` draws of label probabilities, (samples, B, C, *spatial)."""


class PseudoLabels(nn.Module):
    """From patches (B, channels, *spatial) to label probabilities (B, C, *spatial): the mean of M = `samples` draws."""

    def __init__(self, teacher: Teacher, samples: int = 5) -> None:
        super().__init__()
        if samples < 1:
            raise ValueError(f"samples {samples}: a pseudo-label needs at least one draw")
        self.teacher, self.samples = teacher, samples

    @torch.no_grad()
    def forward(self, image: Tensor) -> Tensor:
        return self.teacher.pseudo_label_samples(image, self.samples).mean(0)
