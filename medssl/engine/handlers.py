"""Handlers of the trainer: record what happens, keep checkpoints; all that a training attaches."""

import contextlib
import json
import logging
from collections import defaultdict
from pathlib import Path
from typing import Any

from ignite.engine import Engine, Events
from monai.engines import Evaluator
from monai.handlers import ValidationHandler
from torch import Tensor

from medssl.core.checkpoint import CheckpointStore
from medssl.core.errors import CheckpointError, ConfigError
from medssl.core.files import write_text_atomically
from medssl.core.progress import say
from medssl.core.run_folder import RunFolder, read_facts
from medssl.engine.interruption import interruption
from medssl.engine.showing import ShowProgress
from medssl.engine.tracking import Tracker
from medssl.engine.trainer import MethodTrainer, TrainingDiverged

__all__ = ["KeepCheckpoints", "RecordProgress", "ShowProgress", "TrainingHandlers"]

logger = logging.getLogger(__name__)


class RecordProgress:
    """Writes losses of every step, their mean of every epoch and validation results to the folder and to MLflow.

    stage: the stage's name in the records of a run with several, where losses of different stages have other names in
    MLflow too. health: an evaluator whose results are no validation. checkpoints: of the stage, in the run's folder.
    """

    def __init__(
        self,
        folder: RunFolder,
        tracker: Tracker,
        validator: Engine | None = None,
        stage: str = "",
        health: Engine | None = None,
        checkpoints: str = "checkpoints",
    ) -> None:
        self.folder, self.tracker, self.validator, self.health = folder, tracker, validator, health
        self._checkpoints = checkpoints
        self._named = {"stage": stage} if stage else {}
        self._prefix = f"{stage}_" if stage else ""
        self._rows: list[tuple[int, dict[str, float]]] = []
        self._failed = False

    def attach(self, trainer: MethodTrainer) -> None:
        trainer.add_event_handler(Events.ITERATION_COMPLETED, self._record_step)
        trainer.add_event_handler(Events.EPOCH_COMPLETED, self._record_epoch)
        trainer.add_event_handler(Events.EXCEPTION_RAISED, self._record_failure)
        trainer.add_event_handler(Events.COMPLETED, self._end)
        for kind, engine in (("validation", self.validator), ("health", self.health)):
            if engine is not None:
                engine.add_event_handler(Events.COMPLETED, self._record_metrics, trainer, kind)

    def _record_step(self, trainer: MethodTrainer) -> None:
        values, step = trainer.state.output, trainer.state.iteration
        self.folder.record("step", epoch=trainer.state.epoch, step=step, **self._named, **values)
        self._rows.append((step, values))

    def _record_epoch(self, trainer: MethodTrainer) -> None:
        sums: dict[str, float] = defaultdict(float)
        for _, values in self._rows:
            for name, value in values.items():
                sums[name] += value / len(self._rows)
        trainer.state.metrics["epoch_loss"] = sums["loss"]
        epoch, step, seconds = trainer.state.epoch, trainer.state.iteration, trainer.state.times["EPOCH_COMPLETED"]
        self.folder.record("epoch", epoch=epoch, step=step, seconds=round(seconds, 3), **self._named, **sums)
        if self.tracker.run_id is not None and self.folder.facts().get("mlflow_run_id") != self.tracker.run_id:
            self.folder.update(tracking_uri=self.tracker.tracking_uri, mlflow_run_id=self.tracker.run_id)
        self.folder.record(
            "passes", epoch=epoch, step=step, **self._named, **trainer.passes.of_all_processes().to_json()
        )
        self.tracker.log_metrics([(at, self._tracked(values)) for at, values in self._rows])
        self.tracker.log_metrics([(step, self._tracked(sums, "epoch_"))])
        self._rows = []

    def _record_metrics(self, engine: Engine, trainer: MethodTrainer, kind: str) -> None:
        values = {name: float(value) for name, value in engine.state.metrics.items()}
        at = {"epoch": trainer.state.epoch, "step": trainer.state.iteration}
        self.folder.record(kind, **at, **self._named, **values)
        self.tracker.log_metrics([(trainer.state.iteration, self._tracked(values, f"{kind}_"))])

    def _tracked(self, values: dict[str, float], kind: str = "") -> dict[str, float]:
        return {f"{self._prefix}{kind}{name}": value for name, value in values.items()}

    def _end(self, trainer: MethodTrainer) -> None:
        passes = trainer.passes.of_all_processes().to_json()
        stage = self._named.get("stage", "training")
        if self.folder.is_writer:
            self.folder.update(patch_passes={**self.folder.facts().get("patch_passes", {}), stage: passes})
        self.tracker.rest()

    def _record_failure(self, trainer: MethodTrainer, error: BaseException) -> None:
        if self._failed:  # Ignite raises the event once for the epoch and once for the run
            raise error
        self._failed = True
        with contextlib.suppress(OSError):  # on a full disk, what filled it is the error to show
            self._note_failure(trainer, error)
        self.tracker.finish("FAILED")
        if isinstance(error, KeyboardInterrupt):
            raise interruption(self.folder, trainer, self._checkpoints) from error
        raise error

    def _note_failure(self, trainer: MethodTrainer, error: BaseException) -> None:
        if isinstance(error, TrainingDiverged) and self.folder.is_writer:
            write_text_atomically(self.folder.path / "failure.json", json.dumps(error.facts, indent=1))
        message = str(error) or type(error).__name__
        self.folder.record("failure", epoch=trainer.state.epoch, step=trainer.state.iteration, message=message)
        self.folder.finish("failed")


class KeepCheckpoints:
    """Saves the trainer's state every `interval` epochs and at the end; at the start loads it if the run is resumed.

    A stage that has no checkpoint of its own may begin with that of the same stage of another run, `taken_from`, if
    both have the same split. `followed_by` names the checkpoints of the stage that builds on this one: once it has
    begun, this one must be finished and stays as it is.
    """

    def __init__(
        self,
        folder: RunFolder,
        name: str = "checkpoints",
        interval: int = 1,
        keep: int = 2,
        taken_from: str | Path | None = None,
        followed_by: str | None = None,
    ) -> None:
        self.folder, self.interval = folder, interval
        self.store = CheckpointStore(folder.path / name, keep)
        self.taken_from = None if taken_from is None else Path(taken_from)
        self.next_store = None if followed_by is None else CheckpointStore(folder.path / followed_by)

    def attach(self, trainer: MethodTrainer) -> None:
        if self.folder.resumed and self.store.files():
            trainer.load_state_dict(self.store.load_latest(trainer.state.device)[0])
            say(_resumed_text(trainer, self.store))
        elif self.taken_from is not None:
            self._take(self.taken_from, trainer)
        elif self.folder.resumed:
            logger.warning("%s: no checkpoint yet, training starts at its first epoch.", self.store.folder)
        if not trainer.is_finished:
            self._refuse_if_built_on(trainer)
            self.folder.forget_after(trainer.state.epoch)
        trainer.add_event_handler(Events.EPOCH_COMPLETED, self._save)

    def _take(self, other: Path, trainer: MethodTrainer) -> None:
        ours, theirs = self.folder.facts().get("split_hash"), read_facts(other).get("split_hash")
        if ours != theirs:
            raise ConfigError(
                f"{other}: its split is {theirs}, this run's is {ours}: it may have seen test cases. "
                "Train both with the same data, labelled, seed and split keys."
            )
        trainer.load_state_dict(CheckpointStore(other / self.store.folder.name).load_latest(trainer.state.device)[0])
        if self.folder.is_writer:  # so that this run needs the other one no more
            self.store.save(trainer.state_dict(), trainer.state.epoch)

    def _refuse_if_built_on(self, trainer: MethodTrainer) -> None:
        if self.next_store is not None and self.next_store.files():
            raise CheckpointError(
                f"{self.next_store.folder}: the next stage has begun, but this one is at epoch "
                f"{trainer.state.epoch} of {trainer.state.max_epochs}. Resume with the epochs that the run was started "
                f"with; if a checkpoint in {self.store.folder} is damaged, restore it or start anew."
            )

    def _save(self, trainer: MethodTrainer) -> None:
        epoch = trainer.state.epoch
        if epoch % self.interval and epoch != trainer.state.max_epochs:
            return
        broken = [n for n, t in trainer.method.state_dict().items() if isinstance(t, Tensor) and not t.isfinite().all()]
        if broken:
            raise TrainingDiverged({"loss": float("nan")}, epoch, trainer.state.iteration, [f"weights of {broken[0]}"])
        if self.folder.is_writer:
            self.store.save(trainer.state_dict(), epoch)


def _resumed_text(trainer: MethodTrainer, store: CheckpointStore) -> str:
    """Where a resumed training goes on."""
    last, total = trainer.state.epoch, trainer.state.max_epochs
    if trainer.is_finished:
        return f"{store.folder}: all {total} epochs are trained already"
    return f"{store.folder}: goes on with epoch {last + 1} of {total}"


class TrainingHandlers:
    """All that a training attaches to its trainer: records, progress, validation (where there are cases), checkpoints.

    stage names one of several stages of a run. health: a further evaluator, recorded but not shown as validation.
    """

    def __init__(
        self,
        folder: RunFolder,
        tracker: Tracker,
        validator: Evaluator,
        val_interval: int = 10,
        save_interval: int = 1,
        stage: str = "",
        checkpoints: str = "checkpoints",
        taken_from: str | Path | None = None,
        followed_by: str | None = None,
        health: Evaluator | None = None,
    ) -> None:
        given = [engine for engine in (validator, health) if engine is not None]
        self.handlers: list[Any] = [
            RecordProgress(folder, tracker, validator, stage, health, checkpoints),
            ShowProgress(folder, validator, f"stage {stage}" if stage else "training", health),
            *(ValidationHandler(val_interval, engine) for engine in given if _has_cases(engine)),
            KeepCheckpoints(folder, checkpoints, save_interval, taken_from=taken_from, followed_by=followed_by),
        ]

    def attach(self, trainer: MethodTrainer) -> None:
        for handler in self.handlers:
            handler.attach(trainer)


def _has_cases(evaluator: Evaluator) -> bool:
    return len(evaluator.data_loader) > 0  # type: ignore[arg-type]
