"""Rounds of review and training: the queue offers cases, their true labels come back, a new network is trained."""

import itertools
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.integrate import trapezoid

from medssl.bundle.command import parsed_value
from medssl.bundle.scan_data import ScanData, ScanDataOptions
from medssl.core.csv_files import write_rows
from medssl.core.errors import ConfigError
from medssl.core.files import write_text_atomically
from medssl.core.options import names_of
from medssl.core.progress import say, tracked
from medssl.data.split import Split, read_split, require_same_split
from medssl.metrics.catalogue import DICE
from medssl.report.comparison.bootstrap import Interval
from medssl.report.comparison.markdown import grid_markdown
from medssl.report.grids import Cell, Column, Grid, GridRow
from medssl.report.runs import load_run
from medssl.report.tables import by_case, case_mean
from medssl.review.simulation.gains import area_cell, gain_cell, mean_of
from medssl.review.simulation.pool import ORACLE, offered, score_pool
from medssl.review.strategies import STRATEGIES
from medssl.security.gate import require_harmless
from medssl.sweep import SweepRow, Training, train_all

START = "start"
COLUMNS = ("strategy", "seed", "labelled", "case", "dice")


@dataclass(frozen=True)
class RoundsResult:
    """dice: (strategy, labelled) -> (seeds, cases) of the test cases, structures averaged. patients: of every case."""

    strategies: list[str]
    labelled: list[int]
    seeds: list[int]
    cases: list[str]
    patients: list[str]
    dice: dict[tuple[str, int], np.ndarray]

    def area(self, strategy: str) -> np.ndarray:
        """Area below the curve of Dice against labelled cases, (seeds, cases), as a share of the largest possible."""
        values = np.stack([self.dice[strategy, number] for number in self.labelled])
        return trapezoid(values, self.labelled, axis=0) / (self.labelled[-1] - self.labelled[0])

    def gain(self, strategy: str, over: str) -> tuple[float, Interval]:
        """How much larger the area of a strategy is than that of another one, and its interval."""
        return mean_of(self.area(strategy) - self.area(over), self.patients)


@dataclass(frozen=True)
class Rounds:
    """`rounds` times `per_round` cases are reviewed, beginning with `start` labelled ones; all below `output`.

    Every round trains anew, with the same keys, on all labels there are by then; the first training of a seed is shared
    by all strategies. Besides those of the queue, the strategy "oracle" corrects the worst predictions first, which is
    not always the best order to learn from. What is finished is not done again. trust: the bundle may do harm.
    """

    row: SweepRow
    keys: dict[str, str]
    output: Path
    strategies: Sequence[str] = ("uncertain", "random", ORACLE)
    start: int = 4
    per_round: int = 4
    rounds: int = 3
    seeds: Sequence[int] = (0,)
    trust: bool = False

    def __post_init__(self) -> None:
        unknown = [name for name in self.strategies if name not in (*STRATEGIES, ORACLE)]
        if unknown:
            raise ConfigError(f"strategy '{unknown[0]}' is unknown. Known: {', '.join((*STRATEGIES, ORACLE))}.")
        if min(self.start, self.per_round, self.rounds) < 1:
            raise ConfigError("start, per-round and rounds: expected whole numbers from 1 on.")

    def run(self, jobs: int = 1) -> RoundsResult:
        """Train and review, `jobs` processes at a time, and read what the test cases say."""
        require_harmless(self.row.bundle, self.trust)
        chains = list(itertools.product(self.seeds, self.strategies))
        first = {seed: self._first_split(seed) for seed in self.seeds}
        splits = {(seed, strategy): first[seed] for seed, strategy in chains}
        runs = {(START, seed, 0): self._training(START, seed, 0, first[seed]) for seed in self.seeds}
        train_all(list(runs.values()), jobs, self.trust)
        for number in range(1, self.rounds + 1):
            say(f"round {number} of {self.rounds}")
            before = {
                (seed, strategy): runs[_training_name(strategy, number - 1), seed, number - 1].folder
                for seed, strategy in chains
            }
            records = _scored(sorted(set(before.values())), jobs, self.trust)
            for seed, strategy in chains:
                ids = offered(records[before[seed, strategy]], strategy, self.per_round, seed)
                splits[seed, strategy] = reviewed(splits[seed, strategy], ids)
                runs[strategy, seed, number] = self._training(strategy, seed, number, splits[seed, strategy])
            train_all([runs[strategy, seed, number] for seed, strategy in chains], jobs, self.trust)
        return self._result(runs)

    def _first_split(self, seed: int) -> Split:
        if "dataset_name" not in self.keys:
            raise ConfigError("no data set. Give --dataset_name, e.g. hippocampus, and --dataset_dir.")
        name = self.keys["dataset_name"]
        asked = {key: parsed_value(text) for key, text in self.keys.items() if key in names_of(ScanDataOptions)}
        split = ScanData(**{"dataset_dir": f"data/{name}", **asked, "labelled": self.start, "seed": seed}).split
        waiting, wanted = len(split.role("unlabelled")), self.rounds * self.per_round
        if waiting <= wanted:
            raise ConfigError(f"{wanted} cases to review, {waiting} wait for it. Ask for fewer, or give more scans.")
        return split

    def _training(self, name: str, seed: int, number: int, split: Split) -> Training:
        """The training on a split, whose lists are written for it."""
        lists = self.output / "lists" / f"{name}_{number}_seed{seed}"
        ids = {role: [case["id"] for case in split.role(role)] for role in ("labelled", "unlabelled", "validation")}
        write_text_atomically(lists / "train.list", "\n".join(itertools.chain(*ids.values())))
        write_text_atomically(lists / "test.list", "\n".join(case["id"] for case in split.role("test")))
        keys = {key: value for key, value in self.keys.items() if key not in ("unlabelled", "test")}
        own = {"lists_dir": str(lists), "validation": str(len(ids["validation"])), "title": name}
        row = SweepRow(name, self.row.bundle, self.row.overlays)
        training = Training.of(row, self.output, len(ids["labelled"]), seed, tuple({**keys, **own}.items()))
        stored = training.folder / "split.json"
        if stored.is_file():  # the data may have changed since
            require_same_split(stored, read_split(stored).hash, split.hash)
        return training

    def _result(self, runs: dict[tuple[str, int, int], Training]) -> RoundsResult:
        numbers = range(self.rounds + 1)
        finished = {key: load_run(training.folder) for key, training in runs.items()}
        first = next(iter(finished.values()))
        cases = sorted(by_case(first.per_case))
        patients = {case["id"]: str(case.get("patient", case["id"])) for case in first.split["cases"]}
        dice = {}
        for strategy, number in itertools.product(self.strategies, numbers):
            name = _training_name(strategy, number)
            dice_of_seeds = []
            for seed in self.seeds:
                rows = by_case(finished[name, seed, number].per_case)
                dice_of_seeds.append([case_mean(rows[case], DICE) for case in cases])
            dice[strategy, self.start + number * self.per_round] = np.array(dice_of_seeds)
        return RoundsResult(
            list(self.strategies),
            [self.start + number * self.per_round for number in numbers],
            list(self.seeds),
            cases,
            [patients[case] for case in cases],
            dice,
        )


def _training_name(strategy: str, number: int) -> str:
    """Of the round with this number; the first training, of number 0, is shared by all strategies."""
    return strategy if number > 0 else START


def _scored(runs: Sequence[Path], jobs: int, trust: bool) -> dict[Path, list[dict[str, Any]]]:
    """Run -> the records of its waiting cases, computed in `jobs` processes that share the cores."""
    if jobs == 1:
        return {run: score_pool(run, trust) for run in tracked(runs, "scoring waiting cases", "runs")}
    threads = max(1, (os.cpu_count() or 1) // jobs)
    with ProcessPoolExecutor(jobs, get_context("spawn"), torch.set_num_threads, (threads,)) as pool:
        records = pool.map(score_pool, runs, itertools.repeat(trust))
        return dict(zip(runs, tracked(records, "scoring waiting cases", "runs", total=len(runs)), strict=True))


def reviewed(split: Split, ids: Sequence[str]) -> Split:
    """The split after these unlabelled cases got their labels."""
    return Split([{**case, "role": "labelled"} if case["id"] in ids else case for case in split.cases], split.origin)


def write_rounds(result: RoundsResult, folder: str | Path) -> list[Path]:
    """Write rounds.csv (every test case), rounds.md (means and gains) and rounds.png into `folder`."""
    from medssl.review.simulation.figures import write_rounds_figure  # noqa: PLC0415  (matplotlib takes a second)

    folder = Path(folder)
    write_rows(folder / "rounds.csv", COLUMNS, _rows(result))
    write_text_atomically(folder / "rounds.md", grid_markdown(rounds_grid(result)) + "\n")
    write_rounds_figure(result, folder / "rounds.png")
    return [folder / f"rounds.{kind}" for kind in ("csv", "md", "png")]


def rounds_grid(result: RoundsResult) -> Grid:
    """Mean test Dice of every round, the area below the curve, its gain over random and over oracle, by strategy."""
    others = [name for name in ("random", ORACLE) if name in result.strategies]
    columns = [
        Column("Order of review", "text"),
        *(Column(f"{number} labels") for number in result.labelled),
        Column("Area"),
        *(Column(f"Gain over {name} (points of area)") for name in others),
    ]
    lines = []
    for strategy in result.strategies:
        means = [Cell(f"{result.dice[strategy, number].mean():.3f}") for number in result.labelled]
        area = area_cell(*mean_of(result.area(strategy), result.patients))
        gains = [Cell("–") if strategy == name else gain_cell(*result.gain(strategy, name)) for name in others]
        lines.append(GridRow([Cell(strategy), *means, area, *gains]))
    return Grid(columns, lines)


def _rows(result: RoundsResult) -> list[dict]:
    return [
        {"strategy": strategy, "seed": seed, "labelled": number, "case": case, "dice": float(values[place, column])}
        for (strategy, number), values in result.dice.items()
        for place, seed in enumerate(result.seeds)
        for column, case in enumerate(result.cases)
    ]
