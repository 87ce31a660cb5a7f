"""Ctrl-C in a training: what is kept, and how to go on."""

from medssl.core.checkpoint import CheckpointStore
from medssl.core.run_folder import RunFolder
from medssl.engine.trainer import MethodTrainer


class TrainingInterrupted(KeyboardInterrupt):
    """Ctrl-C; its text is for the user."""


def interruption(folder: RunFolder, trainer: MethodTrainer, checkpoints: str) -> TrainingInterrupted:
    """The same Ctrl-C with a text. checkpoints: the folder inside the run's, where this stage keeps them."""
    state = trainer.state
    files = CheckpointStore(folder.path / checkpoints).files()
    kept = f"The last checkpoint is {files[-1]}" if files else f"{folder.path} holds no checkpoint of this stage yet"
    return TrainingInterrupted(
        f"Stopped in epoch {state.epoch} of {state.max_epochs}. {kept}. "
        "To go on, give the same command with --resume true."
    )
