"""A stage of training: how long it is, what it draws from, its optimiser and its trainer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from monai.engines import Evaluator
from torch import nn
from torch.utils.data import DataLoader

from medssl.bundle.compute import StageCost, ends_by_share, ends_within, steps_of_an_epoch, steps_within
from medssl.bundle.scan_data import ScanData
from medssl.bundle.session import Session
from medssl.core.options import option
from medssl.data.mixing import MixedDataset, make_mixed_loader
from medssl.data.sampling import make_loader
from medssl.engine.handlers import TrainingHandlers
from medssl.engine.trainer import MethodTrainer
from medssl.losses.segmentation import DiceCE
from medssl.methods.method import Method, Schedule


@dataclass(frozen=True)
class StageOptions:
    """How long a training on scans is, and in which batches."""

    batch_size: int = option(4, "patches in each step", at_least=1)
    labelled_per_batch: int | None = option(
        None, "labelled patches in each step; default: half of batch_size", at_least=1
    )
    learning_rate: float = option(0.0001, "learning rate of Adam at the first step", at_least=0)
    weight_decay: float = option(0.0, "weight decay; above 0 the optimiser is AdamW", at_least=0)
    warm_up_steps: int = option(0, "steps in which the learning rate of each stage rises from 0", at_least=0)
    max_epochs: int | None = option(None, "number of epochs; default: the data set's", at_least=1)
    patch_passes: int | None = option(
        None,
        "compute of all stages in patches, forward and backward; a teacher's count a third; replaces max_epochs",
        at_least=1,
    )
    steps_per_epoch: int | None = option(
        None, "steps in each epoch; default: counted from the cases, as in the thesis", at_least=1
    )
    cosine_steps: int | None = option(None, "steps until the learning rate is 0; default: all steps", at_least=1)
    max_grad_norm: float | None = option(None, "gradients longer than this are shortened to it; default: no limit")


class ScanSchedule:
    """Epochs, steps and batches of a training on scans; what is not given follows from the data as in the thesis."""

    def __init__(self, data: ScanData, options: StageOptions) -> None:
        self.batch_size = options.batch_size
        self.labelled_per_batch = options.labelled_per_batch or self.batch_size // 2
        self.epochs = options.max_epochs or data.facts.epochs
        self.steps_per_epoch = options.steps_per_epoch or data.steps_per_epoch(self.batch_size)
        self._asked_steps = options.steps_per_epoch

    def divide(self, stages: Sequence[StageCost], budget: int | None) -> list[int]:
        """The last epoch of each stage; with a budget of patch passes, all epochs follow from it."""
        if budget is None:
            return ends_by_share(self.epochs, [stage.share for stage in stages])
        steps = steps_within(budget, stages)
        self.steps_per_epoch = self._asked_steps or steps_of_an_epoch(steps)
        ends = ends_within(steps, self.steps_per_epoch)
        self.epochs = ends[-1]
        return ends

    @property
    def whole(self) -> Schedule:
        """The schedule of a method that is trained from the first epoch to the last."""
        return Schedule(self.epochs * self.steps_per_epoch, self.steps_per_epoch)


def patch_loader(
    dataset: Any,
    schedule: ScanSchedule,
    session: Session,
    batch_size: int | None = None,
    labelled_per_batch: int | None = None,
    with_unlabelled: bool = True,
) -> DataLoader:
    """Batches of an epoch: labelled and unlabelled patches of a MixedDataset, else labelled ones alone."""
    size, steps = batch_size or schedule.batch_size, schedule.steps_per_epoch
    workers = session.options.num_workers
    if not isinstance(dataset, MixedDataset):
        return make_loader(dataset, size, steps, session.seed, workers)
    labelled = labelled_per_batch or schedule.labelled_per_batch
    return make_mixed_loader(dataset, size, labelled, steps, session.seed, workers, with_unlabelled)


def stage_loader(kind: type[Method], dataset: Any, schedule: ScanSchedule, session: Session) -> DataLoader:
    """Batches for a stage: of both kinds of patches, or as many labelled ones alone where it needs no others."""
    if kind.needs_unlabelled:
        return patch_loader(dataset, schedule, session)
    return patch_loader(dataset, schedule, session, labelled_per_batch=schedule.batch_size, with_unlabelled=False)


def kept_as(names: Sequence[str], number: int) -> dict[str, Any]:
    """How one of the stages is named in records and its checkpoints; a training of one stage has no names."""
    if len(names) == 1:
        return {}
    folders = [f"checkpoints_{name}" for name in names[:-1]] + ["checkpoints"]
    followed_by = folders[number + 1] if number + 1 < len(folders) else None
    return {"stage": names[number], "checkpoints": folders[number], "followed_by": followed_by}


def scan_loss() -> DiceCE:
    """The segmentation loss of every method for scans, with the thesis' weights."""
    return DiceCE(ce_weight=1.0, dice_weight=2.0)


def session_trainer(
    method: nn.Module,
    optimizer: torch.optim.Optimizer,
    scheduler: torch.optim.lr_scheduler.LRScheduler,
    loader: DataLoader,
    session: Session,
    validator: Evaluator,
    last_epoch: int,
    first_epoch: int = 0,
    max_grad_norm: float | None = None,
    **handled: Any,
) -> MethodTrainer:
    """The trainer of a method with records, validation and checkpoints. handled: arguments of `TrainingHandlers`."""
    options = session.options
    handlers = TrainingHandlers(
        session.folder, session.tracker, validator, options.val_interval, options.save_interval, **handled
    )
    return MethodTrainer(
        method,
        optimizer,
        loader,
        last_epoch,
        session.device,
        lr_scheduler=scheduler,
        amp=session.amp,
        seed=session.seed,
        first_epoch=first_epoch,
        max_grad_norm=max_grad_norm,
        train_handlers=[handlers],
    )


def stage_trainer(
    method: nn.Module,
    loader: DataLoader,
    session: Session,
    validator: Evaluator,
    learning_rate: float,
    last_epoch: int,
    first_epoch: int = 0,
    cosine_steps: int | None = None,
    weight_decay: float = 0.0,
    warm_up_steps: int = 0,
    **handled: Any,
) -> MethodTrainer:
    """The trainer of a stage on scans: Adam, with a cosine over its steps.

    cosine_steps: length of the cosine; that of the stage by default. weight_decay: above 0 the optimiser is AdamW.
    warm_up_steps: in which the learning rate rises before the cosine. handled: as in `session_trainer`.
    """
    learning = [parameter for parameter in method.parameters() if parameter.requires_grad]
    kind = torch.optim.AdamW if weight_decay else torch.optim.Adam
    optimizer = kind(learning, lr=learning_rate, weight_decay=weight_decay, fused=True)
    steps = cosine_steps or (last_epoch - first_epoch) * len(loader)
    scheduler = _rate_of(optimizer, steps, warm_up_steps)
    return session_trainer(method, optimizer, scheduler, loader, session, validator, last_epoch, first_epoch, **handled)


def _rate_of(optimizer: torch.optim.Optimizer, steps: int, warm_up_steps: int) -> torch.optim.lr_scheduler.LRScheduler:
    """A cosine from the learning rate to 0 over `steps`, after a straight rise over the first of them, where asked."""
    warm_up = min(warm_up_steps, steps // 2)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps - warm_up)
    if not warm_up:
        return falling
    rising = torch.optim.lr_scheduler.LinearLR(optimizer, 1 / warm_up, 1.0, warm_up)
    return torch.optim.lr_scheduler.SequentialLR(optimizer, [rising, falling], [warm_up])
