"""The step that teacher-student methods of segmentation share: a teacher labels, a student learns from mixed images."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from medssl.losses.segmentation import soft_dice_loss
from medssl.methods.parts import AveragedMethod, CountsSteps, switched_on, teacher_probs
from natural_image_ext.methods.segmentation.cutmix import Mixer
from natural_image_ext.networks.class_banks import IGNORED
from natural_image_ext.networks.segmentation import SegmentationNetwork, upsampled


@dataclass(frozen=True)
class Taught:
    """What the student is shown of unlabelled images: images (B, 3, H, W) and the teacher's probabilities (B, C, H, W).

    labels (B, H, W) are the most likely classes; pixels that came from labelled images carry their label, and 255 marks
    those that are no image but padding.
    """

    images: Tensor
    probs: Tensor
    labels: Tensor

    @property
    def valid(self) -> Tensor:
        """Which pixels count, (B, H, W) bool."""
        return self.labels != IGNORED

    @property
    def confidence(self) -> Tensor:
        """The highest probability of every pixel, (B, H, W)."""
        return self.probs.amax(1)


@dataclass(frozen=True)
class Learned:
    """The student's pass: joined maps of labelled and then unlabelled images, logits of both at full size, and the KL
    of the latents of a neural process (0 without one)."""

    features: Tensor
    labelled: Tensor
    unlabelled: Tensor
    kl: Tensor


class TeacherStudent(CountsSteps, AveragedMethod[SegmentationNetwork], ABC):
    """Losses of a batch with `image` and `label` (labelled), `weak` and `strong` views of unlabelled images.

    The moving average of the weights teaches: it labels the weak views. `mixer` then mixes the strong views and what
    was taught about them; the student learns from labelled and mixed images in one pass. Methods differ in `mixer`
    and in `unlabelled_loss`. In the first `warm_up` steps the student learns from labels alone. dice_weight: of the
    Dice loss on labels, beside their cross-entropy.
    """

    def __init__(
        self,
        network: SegmentationNetwork,
        mixer: Mixer | None = None,
        unlabelled_weight: float = 1.0,
        kl_weight: float = 0.005,
        ema_decay: float = 0.99,
        warm_up: int = 0,
        dice_weight: float = 0.0,
    ) -> None:
        super().__init__(network, ema_decay=ema_decay)
        self.mixer, self.unlabelled_weight, self.kl_weight, self.warm_up = mixer, unlabelled_weight, kl_weight, warm_up
        self.dice_weight = dice_weight

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        taught = self.teach(batch)
        learned = learn(self.network, batch["image"], batch["label"], taught)
        terms = {
            "labelled": labelled_loss(learned.labelled, batch["label"], self.dice_weight),
            "unlabelled": self.unlabelled_loss(learned, taught, batch),
            "kl": learned.kl,
        }
        loss = terms["labelled"] + self.weight_now() * terms["unlabelled"] + self.kl_weight * terms["kl"]
        return {"loss": loss, **terms, "confidence": taught.confidence.mean()}

    @property
    def teachers(self) -> tuple[SegmentationNetwork, ...]:
        return (self.averaged,)

    def weight_now(self) -> float:
        """The weight of what is learned from unlabelled images at this step."""
        return self.unlabelled_weight * switched_on(self.steps_taken, self.warm_up)

    def teach(self, batch: dict[str, Any]) -> Taught:
        """The teacher's opinion on the weak views, mixed with the strong ones."""
        taught = opinion_on(batch, teacher_probs(self.averaged, batch["weak"]))
        return taught if self.mixer is None else self.mixer(taught, batch)

    @abstractmethod
    def unlabelled_loss(self, learned: Learned, taught: Taught, batch: dict[str, Any]) -> Tensor:
        """What is learned from unlabelled images."""


def opinion_on(batch: dict[str, Any], probs: Tensor) -> Taught:
    """What probabilities of the weak views say about the strong ones; padding (`valid` false) has no label."""
    labels = probs.argmax(1)
    return Taught(batch["strong"], probs, torch.where(batch["valid"], labels, IGNORED) if "valid" in batch else labels)


def labelled_loss(logits: Tensor, labels: Tensor, dice_weight: float = 0.0) -> Tensor:
    """Mean cross-entropy of the pixels that have a label; 0, and not NaN, where none has.

    dice_weight: of the soft Dice loss beside it, for structures that are small. It is that of the whole batch, since
    many an image (a slice of a scan) has no structure.
    """
    known = labels != IGNORED
    loss = F.cross_entropy(logits, labels, ignore_index=IGNORED, reduction="sum") / known.sum().clamp_min(1)
    if dice_weight == 0:
        return loss
    probs = logits.softmax(1).movedim(1, 0).flatten(1)
    classes = F.one_hot(labels.masked_fill(~known, 0).flatten(), len(probs)).T
    return loss + dice_weight * soft_dice_loss(probs[None], classes[None], known.flatten()[None])


def learn(network: SegmentationNetwork, images: Tensor, labels: Tensor, taught: Taught) -> Learned:
    """One pass of the student over labelled and taught images.

    With a neural-process head the labelled images are the context and all are targets, taught ones by their labels.
    """
    features = network.features(torch.cat([images, taught.images]))
    number = len(images)
    answer = network.head.learn(features, torch.cat([labels, taught.labels]), labelled=number)
    logits = upsampled(answer.logits, images.shape[2:])
    return Learned(features, logits[:number], logits[number:], answer.kl)
