"""A stage of training: how long it is, what it draws from, its optimiser and its trainer."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from monai.engines import Evaluator, SupervisedEvaluator
from monai.inferers import Inferer, SlidingWindowInferer
from torch import nn
from torch.utils.data import DataLoader

from medssl.bundle.keys import given_options
from medssl.bundle.scan_data import ScanData
from medssl.bundle.session import Session
from medssl.core.options import option
from medssl.data.mixing import MixedDataset, make_mixed_loader
from medssl.data.sampling import make_loader
from medssl.engine.handlers import TrainingHandlers
from medssl.engine.trainer import MethodTrainer
from medssl.engine.validation import segmentation_validator
from medssl.methods.facts import MethodFacts
from medssl.methods.method import Schedule


@dataclass(frozen=True)
class StageOptions:
    """How long a training on scans is, and in which batches."""

    batch_size: int = option(4, "patches a step", at_least=1)
    labelled_per_batch: int | None = option(None, "labelled patches a step; half of them by default", at_least=1)
    max_epochs: int | None = option(None, "epochs; the data set's by default", at_least=1)
    steps_per_epoch: int | None = option(None, "steps an epoch; as the thesis counts by default", at_least=1)
    max_grad_norm: float | None = option(None, "length that longer gradients are cut to")


class ScanSchedule:
    """Epochs, steps and batches of a training on scans; what is not given follows from the data as in the thesis."""

    def __init__(self, data: ScanData, **listed: Any) -> None:
        self.options = given_options(StageOptions, listed)
        self.batch_size = self.options.batch_size
        self.labelled_per_batch = self.options.labelled_per_batch or self.batch_size // 2
        self.epochs = self.options.max_epochs or data.facts.epochs
        self.steps_per_epoch = self.options.steps_per_epoch or data.steps_per_epoch(self.batch_size)

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


def scan_validator(
    network: nn.Module, data: ScanData, session: Session, inferer: Inferer | None = None
) -> SupervisedEvaluator:
    """Validation by sliding windows, half a window apart."""
    windows = inferer or SlidingWindowInferer(data.window_size, sw_batch_size=4, overlap=0.5)
    return segmentation_validator(
        network, data.validation_scans, windows, data.num_classes, session.device, session.amp
    )


def scan_trainer(
    method: nn.Module,
    data: ScanData,
    session: Session,
    schedule: ScanSchedule,
    learning_rate: float,
    validator: Evaluator,
    max_epochs: int | None = None,
) -> MethodTrainer:
    """The trainer of a method that learns in one stage. max_epochs: as in the schedule, where MONAI looks for it."""
    facts: MethodFacts = session.method_facts
    loader = patch_loader(data.patches_for(facts), schedule, session)
    limit = schedule.options.max_grad_norm
    return stage_trainer(method, loader, session, validator, learning_rate, schedule.epochs, max_grad_norm=limit)


def stage_trainer(
    method: nn.Module,
    loader: DataLoader,
    session: Session,
    validator: Evaluator,
    learning_rate: float,
    last_epoch: int,
    first_epoch: int = 0,
    cosine_steps: int | None = None,
    max_grad_norm: float | None = None,
    stage: str = "",
    checkpoints: str = "checkpoints",
    taken_from: str | Path | None = None,
    followed_by: str | None = None,
    health: Evaluator | None = None,
) -> MethodTrainer:
    """Adam with a cosine over the stage's steps, records, validation, checkpoints: one trainer, ready to run.

    cosine_steps: length of the cosine; that of the stage by default. The rest as in `TrainingHandlers`.
    """
    learning = [parameter for parameter in method.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(learning, lr=learning_rate, fused=True)
    steps = cosine_steps or (last_epoch - first_epoch) * len(loader)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    handlers = TrainingHandlers(
        session.folder,
        session.tracker,
        validator,
        session.options.val_interval,
        session.options.save_interval,
        stage,
        checkpoints,
        taken_from,
        followed_by,
        health,
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
