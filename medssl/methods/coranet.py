"""CoraNet: voxels on which a conservative and a radical head agree are learnt as labels, the rest follow a teacher.

Shi and others, TMI 2021.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from medssl.core.options import option
from medssl.core.precision import at_least_float32
from medssl.methods.facts import MethodFacts, coefficients_of
from medssl.methods.mean_teacher import MeanTeacher, MeanTeacherOptions
from medssl.methods.method import Schedule
from medssl.methods.parts import LogitsCopies, moving_average, with_features
from medssl.networks.mc_dropout import mc_dropout

HEADS = ("conservative", "radical")
Heads = dict[str, Tensor]  # logits of the network's own layer as "plain", and of the two heads


@dataclass(frozen=True)
class CoraNetOptions(MeanTeacherOptions):
    """What users may choose of CoraNet."""

    self_training_weight: float = option(
        0.5, "weight of all that is learnt from unlabelled patches", symbol="$v$", weighs="self-training", at_least=0
    )
    caution: float = option(5.0, "weight of background (conservative) or foreground (radical) voxels", at_least=1)
    pretraining: float = option(
        3 / 13, "share of the compute that supervised training on the labels has first", at_least=0, at_most=0.9
    )


class CoraNet(MeanTeacher):
    """The plain, the conservative and the radical head learn labels, and on unlabelled patches what they agree on.

    The moving average decides where conservative and radical labels agree. Chosen here: conservative means that errors
    on the background cost more, in labels and pseudo-labels alike (the released code swaps the two in the latter);
    pseudo-labels are those of the average at each step; the heads begin as copies of the network's last layer; the
    teacher sees the weak view, the student the strong one. Each patch counts the same, however much of it is certain.
    """

    Options = CoraNetOptions
    facts = MethodFacts("CoraNet", True, 30, ("weak", "strong"), coefficients_of(CoraNetOptions))

    def __init__(
        self, network: nn.Module, loss: nn.Module, options: Any = None, schedule: Schedule | None = None
    ) -> None:
        super().__init__(network, loss, options, schedule)
        self.heads = LogitsCopies(network, HEADS)
        self.average_heads = moving_average(self.heads, self.options.ema_decay)

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        image, label = self.labelled_patches(batch)
        number, unlabelled = len(image), ~batch["is_labelled"].bool()
        student = heads_of(self.network, self.heads, torch.cat([image, batch["strong"][unlabelled]]))
        with torch.no_grad(), mc_dropout(self.averaged, enabled=False):
            teacher = heads_of(self.averaged, self.average_heads.module, batch["image"][unlabelled])
        agreed, certain = agreement(teacher)
        everywhere = torch.ones_like(label[:, 0], dtype=torch.bool)
        supervised = self.label_loss({name: logits[:number] for name, logits in student.items()}, label, everywhere)
        ours = {name: logits[number:] for name, logits in student.items()}
        on_certain = self.label_loss(ours, agreed, certain)
        errors = [(ours[name].softmax(1) - teacher[name].softmax(1)).square().mean(1) for name in ours]
        on_uncertain = mean_where(torch.stack(errors).mean(0), ~certain)
        learnt = on_certain + self.weight_now() * on_uncertain
        total = supervised + self.options.self_training_weight * learnt
        records = {"certain": certain.to(total.dtype).mean(), "on_certain": on_certain, "consistency": on_uncertain}
        return {"loss": total, "supervised": supervised, **records}

    def label_loss(self, heads: Heads, labels: Tensor, counts: Tensor) -> Tensor:
        """A quarter of the segmentation loss and of the two heads' cross-entropies, over the voxels that count."""
        weight = counts.to(heads["plain"].dtype)
        rows = range(len(labels))
        plain = [self.loss(heads["plain"][i : i + 1], labels[i : i + 1], weight[i : i + 1])["loss"] for i in rows]
        foreground = labels.squeeze(1) > 0
        leaning = {"conservative": ~foreground, "radical": foreground}
        terms = [torch.stack(plain).mean()]
        for name, is_dear in leaning.items():
            costs = torch.where(is_dear, self.options.caution, 1.0)
            error = F.cross_entropy(at_least_float32(heads[name]), labels.squeeze(1).long(), reduction="none")
            terms.append(mean_where(costs * error, counts))
        return torch.stack(terms).sum() / 4

    def after_step(self) -> None:
        super().after_step()
        self.average_heads.update_parameters(self.heads)


def heads_of(network: nn.Module, heads: nn.Module, images: Tensor) -> Heads:
    """The logits of a network and of its two heads."""
    logits, features = with_features(network, images)
    return {"plain": logits, **heads(features, images.shape[2:])}


def agreement(heads: Heads) -> tuple[Tensor, Tensor]:
    """The conservative labels (B, 1, *spatial), and where (B, *spatial) the radical ones are the same."""
    conservative, radical = (heads[name].argmax(1) for name in HEADS)
    return conservative.unsqueeze(1), conservative == radical


def mean_where(values: Tensor, counts: Tensor) -> Tensor:
    """The mean over patches of the mean of values (B, *spatial) over the voxels that count; 0 where none does."""
    weight = counts.to(values.dtype)
    totals, numbers = (weight * values).flatten(1).sum(1), weight.flatten(1).sum(1)
    return (totals / numbers.clamp_min(1)).mean()
