"""How far a long piece of work is: a bar on a terminal, a plain line every few seconds in a log.

A work may hold others: scans hold windows. All that go on at a time are shown together. A thread shows them, so that
a step that takes long is no silence either.
"""

import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

Item = TypeVar("Item")
LINE_SECONDS = 5.0  # from one line of a log to the next
SIGN_OF_LIFE = "MEDSSL_SIGN_OF_LIFE"  # environment: a file that a process makes when it begins to speak
_BAR_SECONDS = 0.25


class Work:
    """A piece of work with so many steps; without a total nobody knows how many.

    done: steps that an earlier process did. part: how much of further steps is done, where no other work tells it.
    """

    def __init__(self, title: str, total: int | None = None, unit: str = "", done: int = 0) -> None:
        self.title, self.total, self.unit = title, total, unit
        self.done = self.done_before = done
        self.part = 0.0
        self.started = time.monotonic()

    def advance(self, steps: int = 1) -> None:
        """Count steps as done."""
        self.done += steps

    def text(self) -> str:
        """`evaluation: 3 of 20 cases`."""
        if self.total is None:
            return self.title
        return f"{self.title}: {self.done} of {self.total} {self.unit}".rstrip()


@contextmanager
def work(title: str, total: int | None = None, unit: str = "") -> Iterator[Work]:
    """Show a piece of work while the block runs, which counts its steps with `advance`."""
    piece = begin_work(title, total, unit)
    try:
        yield piece
    finally:
        end_work(piece)


def begin_work(title: str, total: int | None = None, unit: str = "", done: int = 0) -> Work:
    """Show a piece of work until `end_work`, where no block can hold it: a handler of an engine's events begins it."""
    piece = Work(title, total, unit, done)
    if is_first_process():
        _display.begin(piece)
    return piece


def end_work(piece: Work) -> None:
    """Show a piece of work no more; one that has ended stays so."""
    _display.end(piece)


def say(text: str) -> None:
    """Print a line, if this is the process that speaks."""
    if is_first_process():
        print(text, flush=True)


def tracked(items: Iterable[Item], title: str, unit: str = "", total: int | None = None) -> Iterator[Item]:
    """The items one by one, with a step for each that is done; `total` where they have no length."""
    if total is None and isinstance(items, Sized):
        total = len(items)
    with work(title, total, unit) as piece:
        for item in items:
            yield item
            piece.advance()


def is_first_process() -> bool:
    """Whether this is the process that speaks: no worker, and the first of several that train together."""
    return multiprocessing.parent_process() is None and os.environ.get("RANK", "0") == "0"


def give_sign_of_life() -> None:
    """Tell the process that started this one that from now on this one speaks for itself."""
    sign = os.environ.pop(SIGN_OF_LIFE, None)
    if sign is not None and Path(sign).parent.is_dir():
        Path(sign).touch()


def line_of(works: list[Work], now: float) -> str:
    """One line for a log: `evaluation: 3 of 20 cases, p07: 48 of 96 windows (35 s, about 4 min left)`."""
    left = left_text(works, now)
    passed = duration_text(now - works[0].started)
    return f"{', '.join(piece.text() for piece in works)} ({passed}{', ' if left else ''}{left})"


def left_text(works: list[Work], now: float) -> str:
    """`about 4 min left` of the first work, which holds the others; empty where nobody knows."""
    seconds = now - works[0].started
    fraction = _fraction(works)
    return f"about {duration_text(seconds / fraction - seconds)} left" if 0.0 < fraction < 1.0 else ""


def _fraction(works: list[Work]) -> float:
    """How much of the outermost work is done; a step that others go on in counts in part."""
    fraction = 0.0
    for piece in reversed(works):
        ahead = (piece.total or 0) - piece.done_before
        if ahead > 0:
            fraction = min(1.0, (piece.done - piece.done_before + max(fraction, piece.part)) / ahead)
    return fraction if works[0].total else 0.0


def duration_text(seconds: float) -> str:
    """`35 s`, `4 min` or `2.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


class _Display:
    """Shows the works that go on, from a thread that lives as long as there are any."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.works: list[Work] = []
        self.bars: Progress | None = None
        self.tasks: dict[int, TaskID] = {}
        self.ended = threading.Event()
        self.last_line = time.monotonic()

    def begin(self, piece: Work) -> None:
        with self.lock:
            self.works.append(piece)
            if len(self.works) > 1:
                return
            self.ended = threading.Event()
            terminal = sys.stderr.isatty()
            if terminal:
                self.bars = _bars()
                self.bars.start()
            first = _BAR_SECONDS if terminal else self._until_a_line_is_due()
            seconds = _BAR_SECONDS if terminal else LINE_SECONDS
            threading.Thread(target=self._show_until, args=(self.ended, first, seconds), daemon=True).start()

    def _until_a_line_is_due(self) -> float:
        """Seconds: works that follow each other are one silence, and one that is soon done needs no line."""
        due = self.last_line + LINE_SECONDS - time.monotonic()
        return max(due, LINE_SECONDS / 5)

    def end(self, piece: Work) -> None:
        with self.lock:
            if piece not in self.works:
                return
            self.works.remove(piece)
            task = self.tasks.pop(id(piece), None)
            if self.bars is not None and task is not None:
                self.bars.remove_task(task)
            if self.works:
                return
            self.ended.set()
            if self.bars is not None:
                self.bars.stop()
                self.bars = None

    def _show_until(self, ended: threading.Event, first: float, seconds: float) -> None:
        wait = first
        while not ended.wait(wait):
            wait = seconds
            with self.lock:
                if ended.is_set() or not self.works:
                    continue
                if self.bars is None:
                    self.last_line = time.monotonic()
                    print(line_of(self.works, self.last_line), file=sys.stderr, flush=True)
                else:
                    self._draw(self.bars)

    def _draw(self, bars: Progress) -> None:
        now = time.monotonic()
        for place, piece in enumerate(self.works):
            if id(piece) not in self.tasks:
                self.tasks[id(piece)] = bars.add_task(piece.title, total=piece.total, unit=piece.unit, left="")
            left = left_text(self.works[place:], now)
            task = self.tasks[id(piece)]
            bars.update(task, description=piece.title, total=piece.total, completed=piece.done, left=left)
        bars.refresh()

    def hold(self) -> None:
        """Before a process is forked: its child would wait for ever for a lock that the thread holds."""
        self.lock.acquire()

    def go_on(self) -> None:
        """After a process was forked."""
        self.lock.release()

    def forget(self) -> None:
        """In a child process: nothing goes on there, and its parent's thread is not with it."""
        self.lock = threading.RLock()
        self.works, self.bars, self.tasks = [], None, {}


def _bars() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        console=Console(stderr=True),
        transient=True,
        auto_refresh=False,
        redirect_stdout=sys.stdout.isatty(),  # what goes into a file must not turn up beside the bars
    )


_display = _Display()
os.register_at_fork(before=_display.hold, after_in_parent=_display.go_on, after_in_child=_display.forget)
