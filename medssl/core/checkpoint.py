"""Checkpoints that survive: written whole or not at all, with a digest; the newest whole one is loaded."""

import hashlib
import logging
import re
import zipfile
from pathlib import Path
from typing import Any

import torch

from medssl.core.errors import CheckpointError
from medssl.core.files import write_atomically, write_text_atomically

_NAME = re.compile(r"^epoch_(\d+)\.pt$")
logger = logging.getLogger(__name__)


class CheckpointStore:
    """The last `keep` checkpoints of one run in `folder`: `epoch_0012.pt`, each with its SHA-256 beside it."""

    def __init__(self, folder: str | Path, keep: int = 2) -> None:
        self.folder, self.keep = Path(folder), keep

    def save(self, state: dict[str, Any], epoch: int) -> Path:
        """Write `state` as the checkpoint of `epoch` and remove what is older than the last `keep` up to it."""
        path = self.folder / f"epoch_{epoch:04d}.pt"
        save_tensors(state, path)
        for old in [file for file in self.files() if _epoch(file) <= epoch][: -self.keep]:
            old.unlink()
            _digest_file(old).unlink(missing_ok=True)
        for abandoned in self.folder.glob(".epoch_*.part"):  # of a process that was killed while it wrote
            abandoned.unlink(missing_ok=True)
        return path

    def files(self) -> list[Path]:
        """Checkpoint files, oldest first."""
        if not self.folder.is_dir():
            return []
        return sorted((path for path in self.folder.iterdir() if _NAME.match(path.name)), key=_epoch)

    def load_latest(self, map_location: Any = "cpu") -> tuple[dict[str, Any], Path]:
        """State and file of the newest checkpoint that is whole; a damaged one is named and the one before it taken.

        Raises CheckpointError if there is none or none is whole: a run never starts over silently.
        """
        files = self.files()
        if not files:
            raise CheckpointError(f"{self.folder}: no checkpoint to resume from. Start without --resume.")
        damage = []
        for path in reversed(files):
            try:
                return load_tensors(path, map_location), path
            except CheckpointError as error:
                logger.warning("%s Falling back to the checkpoint before it.", error)
                damage.append(str(error))
        raise CheckpointError(f"{self.folder}: no checkpoint is whole. {' '.join(damage)}")


def save_tensors(state: Any, path: str | Path) -> None:
    """Write tensors and plain values to `path`, all or nothing; the digest is there before the file."""
    path = Path(path)

    def write(partial: Path) -> None:
        torch.save(state, partial)
        # a file that is about to be replaced stays valid until it is
        valid = [_digest(partial), *([_digest(path)] if path.is_file() and _is_whole(path) else [])]
        write_text_atomically(_digest_file(path), "\n".join(valid))

    try:
        write_atomically(path, write)
    except (OSError, RuntimeError) as error:
        # torch reports a full disk as a RuntimeError of its zip writer
        raise CheckpointError(f"{path}: could not be written ({error}). Free disk space and resume.") from error


def load_tensors(path: str | Path, map_location: Any = "cpu") -> Any:
    """What `save_tensors` wrote; CheckpointError naming the file if it is missing, damaged or not plain tensors."""
    path = Path(path)
    if not path.is_file():
        raise CheckpointError(f"{path}: no such checkpoint.")
    if not _is_whole(path):
        raise CheckpointError(
            f"{path}: damaged, its content does not fit its checksum. If you replaced it, delete the .sha256 beside it."
        )
    try:
        return torch.load(path, map_location=map_location, weights_only=True)
    except Exception as error:  # torch raises many kinds for a file that is no checkpoint
        raise CheckpointError(f"{path}: not a readable checkpoint ({type(error).__name__}).") from error


def _is_whole(path: Path) -> bool:
    """Whether the content fits the digest beside the file or, where that is missing, the checksums inside it."""
    digest = _digest_file(path)
    if digest.is_file():
        return _digest(path) in digest.read_text().split()
    if not zipfile.is_zipfile(path):
        return True  # no file of torch.save: torch.load says what is wrong
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    except (zipfile.BadZipFile, NotImplementedError):
        return False


def _epoch(path: Path) -> int:
    return int(path.stem.removeprefix("epoch_"))


def _digest_file(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
