"""What a user sees of a training while it runs: bars on a terminal, plain lines in a log."""

import sys
from collections.abc import Mapping
from typing import Any

from ignite.engine import Engine, Events

from medssl.core.progress import Work, begin_work, end_work
from medssl.core.run_folder import RunFolder
from medssl.engine.trainer import MethodTrainer


class ShowProgress:
    """Epochs, steps and validations that go on; a plain line an epoch in a log, and one a validation anywhere.

    health: an evaluator whose results are no validation; how far it is is shown, too.
    """

    def __init__(
        self,
        folder: RunFolder,
        validator: Engine | None = None,
        title: str = "training",
        health: Engine | None = None,
    ) -> None:
        self.folder, self.validator, self.title, self.health = folder, validator, title, health
        self._epochs: Work | None = None
        self._steps: Work | None = None
        self._evaluations: dict[Engine, Work] = {}

    def attach(self, trainer: MethodTrainer) -> None:
        if not self.folder.is_writer:
            return
        trainer.add_event_handler(Events.STARTED, self._begin_training)
        trainer.add_event_handler(Events.EPOCH_STARTED, self._begin_epoch)
        trainer.add_event_handler(Events.ITERATION_COMPLETED, self._count_step)
        trainer.add_event_handler(Events.EPOCH_COMPLETED, self._end_epoch)
        self._follow(self.validator, "validation")
        self._follow(self.health, "pseudo-labels against hidden labels")
        if self.validator is not None:
            self.validator.add_event_handler(Events.COMPLETED, self._print_validation, trainer)

    def _follow(self, evaluator: Engine | None, title: str) -> None:
        if evaluator is None:
            return
        unit = "cases" if getattr(getattr(evaluator, "data_loader", None), "batch_size", 1) == 1 else "batches"
        evaluator.add_event_handler(Events.STARTED, self._begin_evaluation, title, unit)
        evaluator.add_event_handler(Events.ITERATION_COMPLETED, self._count_case)
        evaluator.add_event_handler(Events.COMPLETED, self._end_evaluation)

    def _begin_training(self, trainer: MethodTrainer) -> None:
        trainer.at_end.callback(self._end_all)
        self._epochs = begin_work(self.title, trainer.state.max_epochs, "epochs", done=trainer.state.epoch)

    def _begin_epoch(self, trainer: MethodTrainer) -> None:
        self._steps = begin_work(f"epoch {trainer.state.epoch}", trainer.steps_per_epoch, "steps")

    def _count_step(self, trainer: MethodTrainer) -> None:
        if self._steps is not None:
            self._steps.title = f"epoch {trainer.state.epoch}, loss {trainer.state.output['loss']:.4f}"
            self._steps.advance()

    def _end_epoch(self, trainer: MethodTrainer) -> None:
        if self._steps is not None:
            end_work(self._steps)
        if self._epochs is not None:
            self._epochs.advance()
        if not sys.stderr.isatty():
            self._print_epoch(trainer)

    def _begin_evaluation(self, evaluator: Engine, title: str, unit: str) -> None:
        self._evaluations[evaluator] = begin_work(title, evaluator.state.epoch_length, unit)

    def _count_case(self, evaluator: Engine) -> None:
        self._evaluations[evaluator].advance()

    def _end_evaluation(self, evaluator: Engine) -> None:
        end_work(self._evaluations.pop(evaluator))

    def _end_all(self) -> None:
        """At the end of the training, also of one that failed: no bar stays."""
        for piece in (*self._evaluations.values(), self._steps, self._epochs):
            if piece is not None:
                end_work(piece)

    def _print_epoch(self, trainer: MethodTrainer) -> None:
        seconds = trainer.state.times["EPOCH_COMPLETED"]
        loss = trainer.state.metrics.get("epoch_loss", trainer.state.output["loss"])
        self._say(trainer, f"loss {loss:.4f}  {seconds:.1f} s")

    def _print_validation(self, validator: Engine, trainer: MethodTrainer) -> None:
        values: Mapping[str, Any] = validator.state.metrics
        self._say(trainer, "validation " + "  ".join(f"{name} {float(value):.4f}" for name, value in values.items()))

    def _say(self, trainer: MethodTrainer, text: str) -> None:
        print(f"{self.title}: epoch {trainer.state.epoch}/{trainer.state.max_epochs}  {text}", flush=True)
