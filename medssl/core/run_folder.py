"""The folder of one training run: its facts, its history, and the lock that keeps a second process out."""

import atexit
import contextlib
import datetime
import json
from pathlib import Path
from typing import IO, Any

import ignite.distributed as idist

from medssl.core.errors import ConfigError
from medssl.core.files import FolderLock, write_text_atomically


class RunFolder:
    """`run.json` (facts and status) and `history.jsonl` (a line per step, epoch and validation) in one folder.

    In a process group only the first process writes. A folder that holds a run is refused unless `resume`; with
    `resume` on an empty folder the run starts. A second process on the same folder gets a ConfigError at once.
    """

    def __init__(self, path: str | Path, resume: bool = False, facts: dict[str, Any] | None = None) -> None:
        self.path = Path(path)
        self.is_writer = idist.get_rank() == 0
        self._lock = FolderLock(self.path) if self.is_writer else None
        self._history: IO[str] | None = None
        # the first process decides for all: the others might look when it has written run.json already
        self.resumed = bool(idist.broadcast(float((self.path / "run.json").is_file())))
        if self.resumed and not resume:
            self._close()
            raise ConfigError(
                f"{self.path}: holds a run already. Continue it with --resume true, or choose another --output_dir."
            )
        if self.is_writer:
            old = self.facts() if self.resumed else {"started": _now()}
            old.pop("finished", None)
            self._write({**old, **(facts or {}), "status": "running"})
            atexit.register(_note_unfinished, self.path)
            (self.path / "failure.json").unlink(missing_ok=True)

    def facts(self) -> dict[str, Any]:
        """The content of run.json."""
        return read_facts(self.path)

    def update(self, **facts: Any) -> None:
        """Add or replace facts in run.json."""
        if self.is_writer:
            self._write({**self.facts(), **facts})

    def record(self, kind: str, **values: Any) -> None:
        """Append one line to the history."""
        if self.is_writer:
            if self._history is None:
                self._history = (self.path / "history.jsonl").open("a", encoding="utf-8")
            self._history.write(json.dumps({"kind": kind, **values}) + "\n")
            self._history.flush()

    def forget_after(self, epoch: int) -> None:
        """Drop history of epochs later than `epoch`: a resumed run writes them again."""
        history = self.path / "history.jsonl"
        if self.is_writer and history.is_file():
            if self._history is not None:
                self._history.close()
                self._history = None
            lines = history.read_text().splitlines()
            kept = [line for line in lines if _is_record_until(line, epoch)]
            write_text_atomically(history, "".join(f"{line}\n" for line in kept))

    def finish(self, status: str = "finished") -> None:
        """Set the status and let other processes in."""
        self.update(status=status, finished=_now())
        self._close()

    def _close(self) -> None:
        for handle in (self._history, self._lock):
            if handle is not None:
                handle.close()
        self._history = self._lock = None

    def _write(self, facts: dict[str, Any]) -> None:
        write_text_atomically(self.path / "run.json", json.dumps(facts, indent=1, default=str))


def read_facts(folder: str | Path) -> dict[str, Any]:
    """The content of a run's run.json; ConfigError where there is none."""
    path = Path(folder) / "run.json"
    if not path.is_file():
        raise ConfigError(f"{path}: no such file. Give the folder of a run: the one that a training wrote.")
    return json.loads(path.read_text())


def _note_unfinished(folder: Path) -> None:
    """At the process's end: a run that still calls itself running has failed, in training or after it."""
    with contextlib.suppress(ConfigError, OSError, ValueError):
        facts = read_facts(folder)
        if facts["status"] == "running":
            write_text_atomically(folder / "run.json", json.dumps({**facts, "status": "failed"}, indent=1))


def _is_record_until(line: str, epoch: int) -> bool:
    with contextlib.suppress(ValueError):  # a line cut off by a kill
        return json.loads(line).get("epoch", 0) <= epoch
    return False


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
