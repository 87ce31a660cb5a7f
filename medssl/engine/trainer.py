"""The one trainer of every method: a MONAI trainer whose step is the method's own."""

import contextlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import ignite.distributed as idist
import torch
from ignite.engine import Engine, Events
from monai.engines import Trainer
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from medssl.core.errors import CheckpointError, ConfigError, MedsslError
from medssl.core.flags import flag
from medssl.core.seeding import seed_everything
from medssl.engine.patch_passes import PatchPasses, counted_passes


class TrainingDiverged(MedsslError):
    """The loss became NaN or infinite; carries the ids of the batch."""

    def __init__(self, losses: dict[str, float], epoch: int, step: int, case_ids: list[str]) -> None:
        # JSON knows no NaN: numbers as text
        self.facts = {"losses": {k: str(v) for k, v in losses.items()}, "epoch": epoch, "step": step, "cases": case_ids}
        super().__init__(
            f"the loss is {losses['loss']} at step {step} (epoch {epoch}), cases {', '.join(case_ids)}. The last good "
            "checkpoint is kept: lower the learning rate or look at these cases, then resume."
        )


class MethodTrainer(Trainer):
    """Minimises `method(batch)["loss"]`.

    `method` is a module that holds all networks of a training method and maps a batch to named scalar losses; where it
    has an `after_step` that is called after the optimiser's step (for moving averages). The optimiser steps after every
    batch, the scheduler too; all randomness of a step follows from `seed` and its number. In a process group the method
    is wrapped for distributed training. A gradient longer than `max_grad_norm`, where given, is shortened to it. The
    engine's output is the losses as floats, their mean over all processes. A second stage of a run counts on from the
    `first_epoch` that the one before it ended with, up to `max_epochs`.
    """

    def __init__(
        self,
        method: nn.Module,
        optimizer: torch.optim.Optimizer,
        train_data_loader: DataLoader,
        max_epochs: int,
        device: torch.device | str,
        lr_scheduler: torch.optim.lr_scheduler.LRScheduler | None = None,
        amp: bool | str = False,
        seed: int = 0,
        first_epoch: int = 0,
        max_grad_norm: float | None = None,
        train_handlers: Sequence[Any] | None = None,
    ) -> None:
        amp = flag(amp, "amp")
        if not 0 <= first_epoch < max_epochs:
            raise ConfigError(
                f"epochs {first_epoch} to {max_epochs}: a training, and each of its stages, needs at least one."
            )
        if max_grad_norm is not None and not max_grad_norm > 0:
            raise ConfigError(f"max_grad_norm {max_grad_norm}: expected a length above 0, or null for any length.")
        super().__init__(device=device, max_epochs=max_epochs, data_loader=train_data_loader, amp=amp, decollate=False)
        self.method = method.to(device)  # its networks are there already; its buffers need not be
        self.optimizer, self.lr_scheduler, self.seed = optimizer, lr_scheduler, seed
        self.max_grad_norm = max_grad_norm
        self.passes = PatchPasses()
        self.first_epoch = self.state.epoch = first_epoch
        self.steps_per_epoch = len(train_data_loader)
        self.at_end = contextlib.ExitStack()  # what handlers leave to be done when `run` ends, also by an error
        self.state.iteration = first_epoch * self.steps_per_epoch
        self.grad_scaler = torch.amp.GradScaler(self.state.device.type, enabled=amp)
        self.step_module = DistributedDataParallel(method) if idist.get_world_size() > 1 else method
        self.add_event_handler(Events.EPOCH_STARTED, MethodTrainer._begin_epoch)
        self._register_handlers(list(train_handlers or []))

    def run(self) -> None:  # type: ignore[override]
        """Train until `max_epochs`; a run that is already there returns at once."""
        if self.is_finished:
            return
        try:
            super().run()
        finally:
            self.at_end.close()
            self.optimizer.zero_grad(set_to_none=True)  # a next stage has better use for the memory
            # lets persistent workers and their memory go now; left to the garbage collector it takes 5 s a worker
            if isinstance(self.data_loader, DataLoader):
                self.data_loader._iterator = None

    @property
    def is_finished(self) -> bool:
        return self.state.epoch >= self.state.max_epochs

    def require_finished(self) -> None:
        """ConfigError unless all epochs are trained: asked by a stage that builds on this one."""
        if not self.is_finished:
            raise ConfigError(
                f"the first stage has {self.state.epoch} of {self.state.max_epochs} epochs. Run it to its end with "
                "`run first_stage --resume true`, or run `training`."
            )

    def state_dict(self) -> dict[str, Any]:  # type: ignore[override]
        """All that a later process needs to go on as if nothing had happened."""
        scheduler = self.lr_scheduler.state_dict() if self.lr_scheduler else {}
        return {
            "first_epoch": self.first_epoch,
            "epoch": self.state.epoch,
            "step": self.state.iteration,
            "method": self.method.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": scheduler,
            "scaler": self.grad_scaler.state_dict(),
            "passes": asdict(self.passes),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:  # type: ignore[override]
        """Continue after the epoch that `state` was taken at."""
        if state.get("first_epoch", 0) != self.first_epoch:
            raise CheckpointError(
                f"the checkpoint's stage began after epoch {state['first_epoch']}, here it begins after "
                f"{self.first_epoch}. Resume with the epochs that the run was started with."
            )
        try:
            self.method.load_state_dict(state["method"])
            self.optimizer.load_state_dict(state["optimizer"])
            if self.lr_scheduler is not None:
                self._resume_schedule(self.lr_scheduler, state["scheduler"])
            self.grad_scaler.load_state_dict(state["scaler"])
            self.passes = PatchPasses(**state.get("passes", {}))  # not counted by runs of before
        except (KeyError, RuntimeError, ValueError) as error:
            raise CheckpointError(
                f"the checkpoint does not fit this configuration ({str(error).splitlines()[0]}). "
                "Resume with the overlays and keys that the run was started with."
            ) from error
        self.state.epoch = state["epoch"]
        self.state.iteration = state["epoch"] * self.steps_per_epoch  # of this run, should epochs have become longer

    def _resume_schedule(self, scheduler: torch.optim.lr_scheduler.LRScheduler, saved: dict[str, Any]) -> None:
        """Go on at the saved step; a learning rate or length that was changed for the resumed run holds from there."""
        asked = {
            key: value
            for key, value in vars(scheduler).items()
            if key in ("T_max", "total_iters", "eta_min", "base_lrs")
        }
        scheduler.load_state_dict(saved)
        if all(saved.get(key) == value for key, value in asked.items()):
            return
        vars(scheduler).update(asked)
        closed_form = getattr(scheduler, "_get_closed_form_lr", None)
        if closed_form is not None:
            for group, rate, base in zip(self.optimizer.param_groups, closed_form(), asked["base_lrs"], strict=True):
                group["lr"], group["initial_lr"] = rate, base

    def _begin_epoch(self) -> None:
        seed_everything(self.seed, "epoch", self.state.epoch, idist.get_rank())
        set_epoch = getattr(getattr(self.data_loader, "sampler", None), "set_epoch", None)
        if set_epoch is not None:
            set_epoch(self.state.epoch)

    def _iteration(self, engine: Engine, batchdata: dict[str, Any]) -> dict[str, float]:
        # at every step: what a data loader draws at the start of an epoch depends on its workers
        seed_everything(self.seed, "step", self.state.iteration, idist.get_rank())
        batch = {
            k: v.to(self.state.device, non_blocking=True) if isinstance(v, Tensor) else v for k, v in batchdata.items()
        }
        self.method.train()
        self.optimizer.zero_grad(set_to_none=True)
        with counted_passes(self.method, self.passes), torch.autocast(self.state.device.type, enabled=self.amp):
            losses = self.step_module(batch)
        values = _mean_over_processes(losses)
        if not math.isfinite(values["loss"]):
            raise TrainingDiverged(values, self.state.epoch, self.state.iteration, _ids_of_all(batch))
        self.grad_scaler.scale(losses["loss"]).backward()
        if self.max_grad_norm is not None:
            self.grad_scaler.unscale_(self.optimizer)
            nn.utils.clip_grad_norm_(self.method.parameters(), self.max_grad_norm)
        self.grad_scaler.step(self.optimizer)
        self.grad_scaler.update()
        values["lr"] = self.optimizer.param_groups[0]["lr"]
        if self.lr_scheduler is not None:
            self.lr_scheduler.step()
        after_step = getattr(self.method, "after_step", None)
        if after_step is not None:
            after_step()
        return values


def _mean_over_processes(losses: dict[str, Tensor]) -> dict[str, float]:
    """Plain numbers, the same in every process: where one diverges, all stop at the same step.

    They come from the device in one piece: it is waited for once a step.
    """
    values = torch.stack([value.detach().float() for value in losses.values()])
    if idist.get_world_size() > 1:
        values = idist.all_reduce(values) / idist.get_world_size()  # type: ignore[assignment]
    return dict(zip(losses, values.tolist(), strict=True))


def _ids_of_all(batch: dict[str, Any]) -> list[str]:
    """The case ids of the global batch."""
    own = json.dumps([str(i) for i in batch.get("id", [])])
    parts = idist.all_gather(own) if idist.get_world_size() > 1 else [own]
    return [i for part in parts for i in json.loads(part)]  # type: ignore[union-attr, arg-type]


def place(network: nn.Module, device: torch.device | str, channels_last: bool | str = False) -> nn.Module:
    """`network` on `device`, the weights of its 2-D or 3-D convolutions stored channels-last if asked for."""
    network = network.to(device)
    if not flag(channels_last, "channels_last"):
        return network
    is_3d = any(parameter.ndim == 5 for parameter in network.parameters())
    return network.to(memory_format=torch.channels_last_3d if is_3d else torch.channels_last)
