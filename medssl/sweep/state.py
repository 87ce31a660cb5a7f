"""How far trainings in other processes are: read from what they write to their logs."""

import contextlib
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from medssl.core.errors import MedsslError
from medssl.core.progress import Work, work

LOG = "training.log"
LOOK_SECONDS = 1.0
TAIL_BYTES = 4000
_EPOCH = re.compile(r"epoch (\d+)/(\d+)|: (\d+) of (\d+) epochs")
_NOT_A_REASON = re.compile(r"^\s|^\d{4}[-/]|INFO|\d+ of \d+ ")


def last_lines(folder: Path) -> list[str]:
    """The last lines of a training's log that are not blank."""
    log = folder / LOG
    if not log.is_file():
        return []
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - TAIL_BYTES))
        text = file.read().decode(errors="replace")
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def epoch_of(folder: Path) -> tuple[int, int] | None:
    """The last epoch that a training's log names, and the number of epochs; None before the first."""
    for line in reversed(last_lines(folder)):
        match = _EPOCH.search(line)
        if match:
            epoch, total = (int(number) for number in match.groups() if number is not None)
            return epoch, total
    return None


def failure_reason(folder: Path, code: int) -> str:
    """Why a training ended with this exit code: the last line of its log, or the signal that ended it."""
    if code < 0:
        return f"signal {-code} ended it. Memory may have run out."
    lines = [line for line in last_lines(folder) if not _NOT_A_REASON.search(line)]
    return lines[-1] if lines else f"see {folder / LOG}"


def result_text(folder: Path) -> str:
    """`, Dice 0.812` of a finished run; empty where it was not evaluated."""
    from medssl.report.runs import load_run  # noqa: PLC0415  (imports torch: a sweep should answer at once)
    from medssl.report.tables import summarise  # noqa: PLC0415

    with contextlib.suppress(MedsslError):
        run = load_run(folder)
        main = run.task.main
        value = run.measured.get(main.name)
        if value is None and run.per_case:
            value = summarise(run.per_case, [main])[-1].stats[main.name].mean
        if isinstance(value, float):
            return f", {main.label} {main.text(value)}"
    return ""


class Watch:
    """Keeps a piece of work up to date with what trainings write to their logs."""

    def __init__(self, piece: Work, title: str) -> None:
        self.piece, self.title = piece, title
        self.lock = threading.Lock()
        self.running: list[Path] = []

    def followed(self, folder: Path, train: Callable[[Any], int], argument: Any) -> int:
        """`train(argument)`, with the state of its folder shown meanwhile."""
        with self.lock:
            self.running.append(folder)
        try:
            return train(argument)
        finally:
            with self.lock:
                self.running.remove(folder)
                self.piece.advance()

    def look(self) -> None:
        """Read the logs of what is running, and show it."""
        with self.lock:
            epochs = {folder.name: epoch_of(folder) for folder in self.running}
        texts = [f"{name} epoch {epoch[0]} of {epoch[1]}" if epoch else name for name, epoch in epochs.items()]
        self.piece.title = f"{self.title}, {', '.join(texts)}" if texts else self.title
        self.piece.part = sum(epoch[0] / epoch[1] for epoch in epochs.values() if epoch)


@contextlib.contextmanager
def watched(folders: Sequence[Path], title: str = "sweep") -> Iterator[Watch]:
    """Show how many of these trainings are done, and how far those are that run, while the block runs."""
    ended = threading.Event()
    with work(title, len(folders), "trainings") as piece:
        watch = Watch(piece, title)

        def look_until_the_end() -> None:
            while not ended.wait(LOOK_SECONDS):
                watch.look()

        thread = threading.Thread(target=look_until_the_end, daemon=True)
        thread.start()
        try:
            yield watch
        finally:
            ended.set()
            thread.join()
