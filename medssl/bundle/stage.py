"""A stage of training: how long it is, what it draws from, its optimiser and its trainer."""

from dataclasses import dataclass
from typing import Any

import torch
from monai.engines import Evaluator
from torch import nn
from torch.utils.data import DataLoader

from medssl.bundle.scan_data import ScanData
from medssl.bundle.session import Session
from medssl.core.options import option
from medssl.data.mixing import MixedDataset, make_mixed_loader
from medssl.data.sampling import make_loader
from medssl.engine.handlers import TrainingHandlers
from medssl.engine.trainer import MethodTrainer
from medssl.methods.method import Schedule


@dataclass(frozen=True)
class StageOptions:
    """How long a training on scans is, and in which batches."""

    batch_size: int = option(4, "patches in each step", at_least=1)
    labelled_per_batch: int | None = option(
        None, "labelled patches in each step; default: half of batch_size", at_least=1
    )
    learning_rate: float = option(0.0001, "learning rate of Adam at the first step", at_least=0)
    max_epochs: int | None = option(None, "number of epochs; default: the data set's", at_least=1)
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
    **handled: Any,
) -> MethodTrainer:
    """The trainer of a stage on scans: Adam, with a cosine over its steps.

    cosine_steps: length of the cosine; that of the stage by default. handled: as in `session_trainer`.
    """
    learning = [parameter for parameter in method.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(learning, lr=learning_rate, fused=True)
    steps = cosine_steps or (last_epoch - first_epoch) * len(loader)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    return session_trainer(method, optimizer, scheduler, loader, session, validator, last_epoch, first_epoch, **handled)
