"""Plain self-training: a network trained on the labelled cases labels the others for its successor."""

from typing import Any

import torch
from torch import Tensor, nn

from medssl.methods.method import Method
from medssl.networks.blocks import at_least_two
from medssl.networks.unet import MCDropoutUNet3D


class UNetTeacher(MCDropoutUNet3D):
    """The 3D-UNet as a teacher: its pseudo-labels are its own probabilities, without dropout."""

    @torch.no_grad()
    def pseudo_label_samples(self, x: Tensor, samples: int) -> Tensor:
        """(samples, B, C, *spatial) probabilities in evaluation mode; all draws are the same."""
        probs = torch.softmax(self(at_least_two(x))[: len(x)], dim=1)
        return probs.expand(samples, *probs.shape)


class TeacherLearning(Method):
    """Stage 1: the segmentation loss on the labelled patches of a batch."""

    def __init__(self, network: UNetTeacher, segmentation_loss: nn.Module) -> None:
        super().__init__(network, segmentation_loss)

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        labelled = batch["is_labelled"].bool()
        return self.loss(self.network(batch["image"][labelled]), batch["label"][labelled])
