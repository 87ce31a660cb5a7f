"""Tripled-UA: Mean Teacher of three tasks (labels, signed distances, foreground), each weighted by its uncertainty.

Wang, Zhan and others, MICCAI 2021 (Tri-U-MT); the released code is for pictures.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from medssl.core.options import option
from medssl.methods.facts import MethodFacts, coefficients_of
from medssl.methods.mean_teacher import MeanTeacher, MeanTeacherOptions
from medssl.methods.method import Schedule
from medssl.methods.parts import (
    SideHeads,
    moving_average,
    noisy_passes_with_features,
    num_classes_of,
    signed_distance_maps,
    with_features,
)
from medssl.uncertainty.maps import entropy_nats

NOISE, MOST_NOISE = 0.02, 0.05  # in the teacher's passes, as in the released code


class Tasks(NamedTuple):
    """What is said of patches: probabilities (B, C, *spatial), distances (B, C - 1, ...), foreground (B, 1, ...)."""

    probs: Tensor
    distances: Tensor
    foreground: Tensor


@dataclass(frozen=True)
class TripledUAOptions(MeanTeacherOptions):
    """What users may choose of Tripled-UA."""

    teacher_passes: int = option(8, "passes of the teacher with dropout and noise that say how sure it is", at_least=2)
    task_weight: float = option(0.3, "weight of distances and foreground on labelled patches", at_least=0)
    own_weight: float = option(0.1, "weight of distances and foreground of the student's own labels", at_least=0)


class TripledUA(MeanTeacher):
    """Labels, signed distance maps and the image of the foreground are learnt, and each follows the teacher's.

    Squared errors of labels weigh 1 - U with U the entropy, from 0 to 1; those of distances and foreground exp(-U) with
    U their variance and standard deviation over `teacher_passes` passes, which are averaged with more weight where
    they are sure. Unlike the released code, teacher and student have distances of one scale, in [-1, 1]. Chosen here:
    both task weights on labels (missing there), heads on the last features, one view for both networks.
    """

    Options = TripledUAOptions
    facts = MethodFacts("Tripled-UA", True, 29, ("weak",), coefficients_of(TripledUAOptions))

    def __init__(
        self, network: nn.Module, loss: nn.Module, options: Any = None, schedule: Schedule | None = None
    ) -> None:
        super().__init__(network, loss, options, schedule)
        self.heads = SideHeads(network, {"distances": num_classes_of(network) - 1, "foreground": 1})
        self.average_heads = moving_average(self.heads, self.options.ema_decay)

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        image, label = self.labelled_patches(batch)
        number, images = len(image), torch.cat([image, batch["image"][~batch["is_labelled"].bool()]])
        logits, features = with_features(self.network, images)
        student = Tasks(logits.softmax(1), *tasks_of(self.heads, features, images))
        terms = self.loss(logits[:number], label)
        on_labels = task_error(Tasks(*(task[:number] for task in student)), image, label)
        own_labels = logits[number:].detach().argmax(1, keepdim=True)
        on_own = task_error(Tasks(*(task[number:] for task in student)), images[number:], own_labels)
        consistency = weighted_errors(student, *self.taught(images))
        total = terms["loss"] + self.options.task_weight * on_labels + self.options.own_weight * on_own
        total = total + self.weight_now() * consistency
        return {**terms, "loss": total, "tasks": on_labels, "own_tasks": on_own, "consistency": consistency}

    @torch.no_grad()
    def taught(self, images: Tensor) -> tuple[Tasks, Tasks]:
        """The teacher's word on each task, and its weights: all in the shape of the student's."""
        passes = self.options.teacher_passes
        probs, features = noisy_passes_with_features(self.averaged, images, passes, NOISE, MOST_NOISE)
        distances, foreground = zip(
            *(tasks_of(self.average_heads.module, seen, images) for seen in features), strict=True
        )
        return fused(Tasks(probs, torch.stack(distances), torch.stack(foreground)))

    def after_step(self) -> None:
        super().after_step()
        self.average_heads.update_parameters(self.heads)


def tasks_of(heads: nn.Module, features: Tensor, images: Tensor) -> tuple[Tensor, Tensor]:
    """Signed distances and the foreground that heads read from features."""
    sides = heads(features, images.shape[2:])
    return sides["distances"].tanh(), sides["foreground"]


def task_error(tasks: Tasks, images: Tensor, labels: Tensor) -> Tensor:
    """Squared errors of the distances from those of labels, and of the foreground from the image inside of them."""
    maps = signed_distance_maps(labels, tasks.distances.shape[1] + 1).to(tasks.distances.dtype)
    inside = images * (labels > 0)
    return (tasks.distances - maps).square().mean() + (tasks.foreground - inside).square().mean()


def fused(passes: Tasks) -> tuple[Tasks, Tasks]:
    """The mean of several passes, which weigh more where they are sure, and how much each task is worth there."""
    most = math.log(passes.probs.shape[2])
    sureness = torch.softmax(1 - entropy_nats(passes.probs, 2) / most, dim=0).unsqueeze(2)
    mean = Tasks(*((sureness * task).sum(0) for task in passes))
    of_labels = 1 - entropy_nats(mean.probs, 1).unsqueeze(1) / most
    return mean, Tasks(of_labels, torch.exp(-passes.distances.var(0)), torch.exp(-passes.foreground.std(0)))


def weighted_errors(student: Tasks, teacher: Tasks, weights: Tasks) -> Tensor:
    """The sum over tasks of the mean squared error between student and teacher, by weights."""
    tasks = zip(student, teacher, weights, strict=True)
    return torch.stack([(weight * (ours - theirs).square()).mean() for ours, theirs, weight in tasks]).sum()
