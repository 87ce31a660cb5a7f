"""PS-MT: two teachers that are updated in turn, a feature perturbation both dislike, confidence-weighted learning."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from medssl.networks.mc_dropout import mc_dropout
from natural_image_ext.methods.segmentation.step import Learned, Taught, TeacherStudent, opinion_on
from natural_image_ext.networks.class_banks import IGNORED
from natural_image_ext.networks.np_seg_head import NPSegHead
from natural_image_ext.networks.segmentation import SegmentationNetwork, upsampled


class PSMT(TeacherStudent):
    """Cross-entropy on pixels whose confidence reaches `confidence`, each weighted by it, from perturbed features.

    The mean of two teachers labels; one is updated in odd epochs (of `steps_per_epoch` steps), the other in even ones;
    the first of them is evaluated.
    The student's joined maps of unlabelled images are moved by `radius` times their length in the direction that
    changes the teachers' opinion most (virtual adversarial, one step of power iteration).
    """

    def __init__(
        self,
        network: SegmentationNetwork,
        *,
        confidence: float = 0.6,
        radius: float = 0.1,
        steps_per_epoch: int = 100,
        ema_decay: float = 0.996,
        **shared: Any,
    ) -> None:
        super().__init__(network, ema_decay=ema_decay, **shared)
        self.assistant = AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(ema_decay))
        self.assistant.requires_grad_(False)
        self.confidence, self.radius, self.steps_per_epoch = confidence, radius, steps_per_epoch

    @property
    def teachers(self) -> tuple[SegmentationNetwork, SegmentationNetwork]:
        return self.averaged, self.assistant.module  # type: ignore[return-value]

    @torch.no_grad()
    def teach(self, batch: dict[str, Any]) -> Taught:
        with mc_dropout(nn.ModuleList(self.teachers), enabled=False):
            logits = [teacher(batch["weak"]) for teacher in self.teachers]
        taught = opinion_on(batch, torch.stack(logits).mean(0).softmax(1))
        return taught if self.mixer is None else self.mixer(taught, batch)

    def unlabelled_loss(self, learned: Learned, taught: Taught, batch: dict[str, Any]) -> Tensor:
        features = learned.features[len(batch["image"]) :]
        logits = upsampled(_logits(self.network, features + self.perturbation(features)), taught.labels.shape[1:])
        each = F.cross_entropy(logits, taught.labels, ignore_index=IGNORED, reduction="none")
        weight = taught.confidence * (taught.confidence >= self.confidence)
        return (each * weight).mean()

    def perturbation(self, features: Tensor) -> Tensor:
        """What to add to features (B, C, H, W), as long as `radius` times them, to confuse the teachers."""
        still = features.detach()
        length = still.flatten(1).norm(dim=1)[:, None, None, None]
        direction = _unit(torch.randn_like(still)).requires_grad_()
        with mc_dropout(nn.ModuleList(self.teachers), enabled=False):
            total = torch.stack([_change(teacher, still, 1e-3 * length * direction) for teacher in self.teachers]).sum()
        (found,) = torch.autograd.grad(total, direction)
        return self.radius * length * _unit(found)

    def after_step(self) -> None:
        """The teacher whose turn it is follows the student; the other one stays as it is."""
        if int(self.step) // self.steps_per_epoch % 2 == 0:
            self.average.update_parameters(self.network)
        else:
            self.assistant.update_parameters(self.network)
        self.step += 1


def _change(teacher: SegmentationNetwork, features: Tensor, moved_by: Tensor) -> Tensor:
    """How much the teacher's opinion changes if the features are moved: a KL."""
    before = _logits(teacher, features, samples=0).detach().softmax(1)
    after = _logits(teacher, features + moved_by, samples=0).log_softmax(1)
    return F.kl_div(after, before, reduction="batchmean")


def _logits(network: SegmentationNetwork, features: Tensor, samples: int | None = None) -> Tensor:
    if isinstance(network.head, NPSegHead):
        return network.head(features, samples).mean_logits
    return network.head(features)


def _unit(maps: Tensor) -> Tensor:
    """Each of maps (B, ...) with length 1."""
    return maps / maps.flatten(1).norm(dim=1).clamp_min(1e-12)[:, None, None, None]
