"""Trainings in processes of their own: checked before the first begins, watched while they run."""

import json
import os
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from medssl.core.errors import ConfigError
from medssl.core.files import write_text_atomically
from medssl.core.output_folder import require_output_folder
from medssl.core.progress import duration_text, say, work
from medssl.core.stock_command import as_run, config_files, find_bundle, stock_command
from medssl.security.gate import require_harmless
from medssl.sweep.state import LOG, failure_reason, result_text, watched


@dataclass(frozen=True)
class SweepRow:
    """One row of the tables to come: the bundle, overlays beside its train.json, and the keys that make the row."""

    name: str
    bundle: Path
    overlays: tuple[str, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()

    def files(self) -> list[Path]:
        """Its configuration files; ConfigError for a bundle or an overlay there is not."""
        return config_files(find_bundle(self.bundle), "train", self.overlays)


@dataclass(frozen=True)
class Training:
    """One cell of the grid: its folder and the keys given to `monai.bundle run training`."""

    folder: Path
    row: SweepRow
    keys: dict[str, str]

    @classmethod
    def of(
        cls, row: SweepRow, output: Path, labelled: int, seed: int, keys: tuple[tuple[str, str], ...] = ()
    ) -> "Training":
        """The training of a row with so many labels and this seed, below `output`."""
        folder = output / f"{row.name}_{labelled}_seed{seed}"
        own = {"labelled": str(labelled), "seed": str(seed), "output_dir": str(folder), "resume": "true"}
        return cls(folder, row, {**dict(keys), **dict(row.keys), **own, "bundle_root": str(row.bundle)})

    @property
    def is_finished(self) -> bool:
        facts = self.folder / "run.json"
        return facts.is_file() and json.loads(facts.read_text()).get("status") == "finished"

    def command(self) -> list[str]:
        """The training's command line."""
        return as_run(stock_command("training", self.row.files(), self.keys))

    def check(self) -> None:
        """ConfigError for a bundle, an overlay or a folder that does not fit, or keys other than an earlier sweep's."""
        self.row.files()
        require_output_folder(self.folder, resume=True)
        note = self._note
        if note.is_file() and note.read_text() != self._asked():
            raise ConfigError(f"{note}: this run was swept with other keys. Use another --output_dir for this sweep.")

    def remember(self) -> None:
        """Note what the cell is trained with, for `check` of a later sweep."""
        write_text_atomically(self._note, self._asked())

    def run(self, threads: int) -> int:
        """Train in a process of its own; its exit code."""
        self.folder.mkdir(parents=True, exist_ok=True)
        say(f"{self.folder.name}: begins")
        started = time.monotonic()
        with (self.folder / LOG).open("a") as log:
            done = subprocess.run(  # noqa: S603  (our own interpreter and configs)
                self.command(),
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "OMP_NUM_THREADS": str(threads)},
                check=False,
            )
        lasted = duration_text(time.monotonic() - started)
        if done.returncode == 0:
            say(f"{self.folder.name}: finished after {lasted}{result_text(self.folder)}")
        else:
            say(f"{self.folder.name}: FAILED after {lasted}: {failure_reason(self.folder, done.returncode)}")
        return done.returncode

    @property
    def _note(self) -> Path:
        return self.folder / "sweep.json"

    def _asked(self) -> str:
        return json.dumps({"overlays": list(self.row.overlays), "keys": self.keys}, indent=1, sort_keys=True)


def train_all(trainings: Sequence[Training], jobs: int = 1, trust: bool = False) -> list[Path]:
    """Train what is not finished, `jobs` at a time with the cores shared among them; the folders of all runs.

    All are checked before the first begins. A training that fails does not stop the others; ConfigError names those
    that failed and where their log is; ConfigError, too, for a bundle that could do harm, unless the user said `trust`.
    """
    waiting = [training for training in trainings if not training.is_finished]
    finished = len(trainings) - len(waiting)
    say(f"sweep: {len(waiting)} trainings to do" + (f", {finished} are finished" if finished else ""))
    for training in trainings:
        training.check()
    for bundle in sorted({training.row.bundle for training in trainings}):
        require_harmless(bundle, trust)
    _check_keys(waiting)
    for training in trainings:
        training.remember()
    codes = _run_all(waiting, jobs)
    failed = [training.folder for training, code in zip(waiting, codes, strict=True) if code]
    if failed:
        logs = ", ".join(str(folder / LOG) for folder in failed)
        raise ConfigError(f"{len(failed)} of {len(codes)} trainings failed; see {logs}. Run the command again.")
    return [training.folder for training in trainings]


def _run_all(waiting: Sequence[Training], jobs: int) -> list[int]:
    """The exit codes. After Ctrl-C no further training begins."""
    if not waiting:
        return []
    threads = max(1, (os.cpu_count() or 1) // jobs)
    pool = ThreadPoolExecutor(jobs)
    with watched([training.folder for training in waiting]) as watch:
        futures = [pool.submit(watch.followed, training.folder, training.run, threads) for training in waiting]
        try:
            return [future.result() for future in futures]
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _check_keys(waiting: Sequence[Training]) -> None:
    """ConfigError for a key, or a value of one, that a training would refuse. The cells of a row differ in numbers."""
    one_of_rows = {(training.row, tuple(training.keys)): training for training in waiting}
    if not one_of_rows:
        return
    with work("checking the keys", len(one_of_rows), "rows") as progress:
        from medssl.bundle.rehearsal import rehearse  # noqa: PLC0415  (imports MONAI: files are checked before)

        for training in one_of_rows.values():
            rehearse("training", training.row.files(), training.keys)
            progress.advance()
