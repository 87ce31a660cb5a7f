"""3D Graph-S2Net: Mean Teacher of labels and signed distances, whose features tell each other what they know as graphs.

Huang and others, MICCAI 2021; no code was released.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from medssl.core.options import option
from medssl.methods.facts import MethodFacts, coefficients_of
from medssl.methods.mean_teacher import MeanTeacher, MeanTeacherOptions
from medssl.methods.method import Schedule
from medssl.methods.parts import (
    GraphExchange,
    SideHeads,
    logits_layer,
    moving_average,
    num_classes_of,
    signed_distance_maps,
    with_features,
)
from medssl.networks.mc_dropout import mc_dropout


class Answers(NamedTuple):
    """Logits of the network itself, those after the exchange (B, C, *spatial), and distances (B, C - 1, *spatial)."""

    plain: Tensor
    joint: Tensor
    distances: Tensor


@dataclass(frozen=True)
class GraphS2NetOptions(MeanTeacherOptions):
    """What users may choose of 3D Graph-S2Net."""

    distance_weight: float = option(
        0.3, "weight of the signed distance maps", symbol="$a$", weighs="distances", at_least=0
    )
    steepness: float = option(1500.0, "k of sigmoid(-k z), by which distances z become probabilities", at_least=1)
    nodes: int = option(16, "nodes of each graph", at_least=1)


class GraphTasks(nn.Module):
    """Logits and signed distances from a network's last features, after an exchange between graphs of both tasks."""

    def __init__(self, network: nn.Module, nodes: int) -> None:
        super().__init__()
        layer, classes = logits_layer(network), num_classes_of(network)
        self.branches = SideHeads(network, {"labels": layer.in_channels, "distances": layer.in_channels})
        self.exchange = GraphExchange(layer.in_channels, layer.weight.ndim - 2, nodes)
        self.of_labels = SideHeads(network, {"joint": classes})
        self.of_distances = SideHeads(network, {"distances": classes - 1})

    def forward(self, features: Tensor, size: torch.Size) -> tuple[Tensor, Tensor]:
        branches = self.branches(features, features.shape[2:])
        labels, distances = self.exchange(branches["labels"].relu(), branches["distances"].relu())
        return self.of_labels(labels, size)["joint"], self.of_distances(distances, size)["distances"].tanh()


class GraphS2Net(MeanTeacher):
    """Labels and signed distances are learnt with and without a graph exchange; all follow the teacher and agree.

    Chosen here, since only the abstract was at hand: 16 nodes on the network's last features, weights as in DTC and
    Mean Teacher. The exported network has no exchange: its own logits learn the labels, and follow the teacher's logits
    after the exchange.
    """

    Options = GraphS2NetOptions
    facts = MethodFacts("3D Graph-S2Net", True, 37, ("weak", "strong"), coefficients_of(GraphS2NetOptions))

    def __init__(
        self, network: nn.Module, loss: nn.Module, options: Any = None, schedule: Schedule | None = None
    ) -> None:
        super().__init__(network, loss, options, schedule)
        self.tasks = GraphTasks(network, self.options.nodes)
        self.average_tasks = moving_average(self.tasks, self.options.ema_decay)

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        image, label = self.labelled_patches(batch)
        number, unlabelled = len(image), ~batch["is_labelled"].bool()
        student = answers_of(self.network, self.tasks, torch.cat([image, batch["strong"][unlabelled]]))
        with torch.no_grad(), mc_dropout(self.averaged, enabled=False):
            teacher = answers_of(self.averaged, self.average_tasks.module, batch["image"][unlabelled])
        terms = self.loss(student.plain[:number], label)
        joint = self.loss(student.joint[:number], label)["loss"]
        maps = signed_distance_maps(label, student.plain.shape[1]).to(student.distances.dtype)
        on_distances = (student.distances[:number] - maps).square().mean()
        consistency = taught_error(Answers(*(answer[number:] for answer in student)), teacher)
        told = torch.sigmoid(-self.options.steepness * student.distances)
        duality = (told - student.joint.softmax(1)[:, 1:]).square().mean()
        total = terms["loss"] + joint + self.options.distance_weight * on_distances
        total = total + self.weight_now() * (consistency + duality)
        records = {"joint": joint, "distances": on_distances, "consistency": consistency, "duality": duality}
        return {**terms, "loss": total, **records}

    def after_step(self) -> None:
        super().after_step()
        self.average_tasks.update_parameters(self.tasks)


def answers_of(network: nn.Module, tasks: nn.Module, images: Tensor) -> Answers:
    """What a network says of images, without and with the exchange."""
    logits, features = with_features(network, images)
    return Answers(logits, *tasks(features, images.shape[2:]))


def taught_error(student: Answers, teacher: Answers) -> Tensor:
    """Squared errors of both probabilities from the teacher's after the exchange, and of the distances."""
    target = teacher.joint.softmax(1)
    of_labels = [(logits.softmax(1) - target).square().mean() for logits in (student.plain, student.joint)]
    return of_labels[0] + of_labels[1] + (student.distances - teacher.distances).square().mean()
