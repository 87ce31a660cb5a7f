"""PS-MT: two teachers that are updated in turn, a feature perturbation both dislike, confidence-weighted learning."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from medssl.methods.parts import confidence_mask, moving_average, sigmoid_ramp
from medssl.networks.mc_dropout import mc_dropout
from natural_image_ext.methods.segmentation.step import Learned, Taught, TeacherStudent, opinion_on
from natural_image_ext.networks.class_banks import IGNORED
from natural_image_ext.networks.segmentation import SegmentationNetwork, upsampled


class PSMT(TeacherStudent):
    """Cross-entropy on pixels whose confidence reaches `confidence`, each weighted by it, from perturbed features.

    The mean of two teachers' logits labels; one is updated in odd epochs (of `steps_per_epoch` steps), the other in
    even ones; the one updated last is `averaged`, which is evaluated. The one whose turn it is not assists: only its
    `assisted` highest classes of a pixel count. The second has no say before it was updated. The weight of the loss is
    full after `ramp_up_epochs` epochs.

    The student's joined maps of unlabelled images are moved by `radius` times their length in the direction that
    changes the teachers' opinion most (virtual adversarial, one step of power iteration).
    """

    def __init__(
        self,
        network: SegmentationNetwork,
        *,
        confidence: float = 0.6,
        radius: float = 0.1,
        assisted: int = 7,
        ramp_up_epochs: int = 12,
        steps_per_epoch: int = 100,
        ema_decay: float = 0.996,
        **shared: Any,
    ) -> None:
        super().__init__(network, ema_decay=ema_decay, **shared)
        self.assistant = moving_average(network, ema_decay)
        self.confidence, self.radius, self.assisted = confidence, radius, assisted
        self.ramp_up_epochs, self.steps_per_epoch = ramp_up_epochs, steps_per_epoch

    @property
    def teachers(self) -> tuple[SegmentationNetwork, ...]:
        """Those that teach now, the one whose turn it is first."""
        latest, other = self.averaged, self.assistant.module
        if not int(self.assistant.n_averaged):
            return (latest,)
        return (other, latest) if self._turn_changes() else (latest, other)  # type: ignore[return-value]

    @torch.no_grad()
    def teach(self, batch: dict[str, Any]) -> Taught:
        with mc_dropout(nn.ModuleList(self.teachers), enabled=False):
            leading, *assisting = (teacher(batch["weak"]) for teacher in self.teachers)
        logits = [leading, *(_limited(other, leading, self.assisted) for other in assisting)]
        taught = opinion_on(batch, torch.stack(logits).mean(0).softmax(1))
        return taught if self.mixer is None else self.mixer(taught, batch)

    def weight_now(self) -> float:
        """The weight of this step: it rises as exp(-5 (1 - t)^2), t from 0 to 1 while it ramps up."""
        ramp_up = self.ramp_up_epochs * self.steps_per_epoch
        return super().weight_now() * sigmoid_ramp(self.steps_taken, ramp_up)

    def unlabelled_loss(self, learned: Learned, taught: Taught, batch: dict[str, Any]) -> Tensor:
        features = learned.features[len(batch["image"]) :]
        logits = upsampled(_logits(self.network, features + self.perturbation(features)), taught.labels.shape[1:])
        loss_of_pixels = F.cross_entropy(logits, taught.labels, ignore_index=IGNORED, reduction="none")
        weight = taught.confidence * confidence_mask(taught.probs, self.confidence)
        return (loss_of_pixels * weight).mean()

    def perturbation(self, features: Tensor) -> Tensor:
        """What to add to features (B, C, H, W), as long as `radius` times them, to confuse the teachers.

        It is found in float32 under autocast, too: half precision does not see a change of a thousandth.
        """
        still = features.detach().float()
        length = still.flatten(1).norm(dim=1)[:, None, None, None]
        direction = _unit(torch.randn_like(still)).requires_grad_()
        exact = torch.autocast(still.device.type, enabled=False)
        with exact, mc_dropout(nn.ModuleList(self.teachers), enabled=False):
            total = torch.stack([_change(teacher, still, 1e-3 * length * direction) for teacher in self.teachers]).sum()
            (gradient,) = torch.autograd.grad(total, direction)
        return (self.radius * length * _unit(gradient)).to(features.dtype)

    def after_step(self) -> None:
        """The teacher whose turn it is follows the student; the other one stays as it is."""
        if self._turn_changes():
            _exchange(self.average, self.assistant)
        super().after_step()

    def _turn_changes(self) -> bool:
        """Whether this is the first step of an epoch, in which the teacher that rested is updated."""
        return self.steps_taken > 0 and self.steps_taken % self.steps_per_epoch == 0


def _exchange(first: nn.Module, second: nn.Module) -> None:
    """Each gets the other one's weights: validation and export hold the module `averaged`, not its name."""
    for weight, other_weight in zip(first.state_dict().values(), second.state_dict().values(), strict=True):
        kept = weight.clone()
        weight.copy_(other_weight)
        other_weight.copy_(kept)


def _limited(assisting: Tensor, leading: Tensor, classes: int) -> Tensor:
    """Logits (B, C, H, W) of the assisting teacher for its highest `classes` of a pixel, else those of the leading."""
    lowest = assisting.topk(min(classes, assisting.shape[1]), dim=1).values[:, -1:]
    return torch.where(assisting >= lowest, assisting, leading)


def _change(teacher: SegmentationNetwork, features: Tensor, moved_by: Tensor) -> Tensor:
    """How much the teacher's opinion changes if the features are moved: a KL."""
    before = _logits(teacher, features, samples=0).detach().softmax(1)
    after = _logits(teacher, features + moved_by, samples=0).log_softmax(1)
    return F.kl_div(after, before, reduction="batchmean")


def _logits(network: SegmentationNetwork, features: Tensor, samples: int | None = None) -> Tensor:
    return network.head.mean_logits(features, samples)


def _unit(maps: Tensor) -> Tensor:
    """Each of maps (B, ...) with length 1."""
    return maps / maps.flatten(1).norm(dim=1).clamp_min(1e-12)[:, None, None, None]
