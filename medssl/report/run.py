"""A run as it was read back, and the task it is of: what its cases are, what is measured of them, how it is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medssl.core.stored_paths import WRITTEN, located
from medssl.methods.facts import MethodFacts
from medssl.metrics.catalogue import Metric
from medssl.report.method_facts import facts_of_method

if TYPE_CHECKING:  # what draws and writes lies above this module
    from matplotlib.figure import Figure
    from rich.table import Table

PerCaseRow = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """One kind of runs. A package adds its own with the entry point group `medssl.tasks`, by the name in run.json.

    case, cases: what a test case is called, one and several. table: the file of evaluation/ with a row for each case,
    with the columns `needed`. metrics: compared between runs, in the order of tables; columns: the other numbers of
    the table. main: differences are taken of it. validated: measured while training. sampled: measured, besides time,
    against the number of samples, by `write_sample_curve(run, values, limit, trust=False)`. percent: the metrics of
    the table of results where that is in percent. samples_by_case: samples.csv has a row for each case, not one of
    their mean. of_scans: cases are scans with slices to look at, which can be reviewed.

    template: the page of a run, filled with `content` of it. figures: what can be drawn of it, by name. summary_table:
    its results for the terminal. results_lead: what the columns of a comparison mean.
    """

    name: str
    case: str
    cases: str
    table: str
    needed: tuple[str, ...]
    metrics: tuple[Metric, ...]
    main: Metric
    validated: Metric
    sampled: tuple[Metric, ...]
    template: str
    content: Callable[[Run], dict[str, Any]]
    figures: Callable[[Run], dict[str, Callable[[], Figure]]]
    summary_table: Callable[[Run], Table]
    results_lead: Callable[[Sequence[Any]], str]
    write_sample_curve: Callable[..., Path]
    columns: tuple[Metric, ...] = ()
    percent: tuple[Metric, ...] = ()
    samples_by_case: bool = False
    of_scans: bool = False


@dataclass(frozen=True)
class Run:
    """One run folder. Every part but `facts` (run.json) is empty where its file is not there (yet).

    per_case: the rows of the task's table; a picture is a case of one nameless structure. measured: what was measured
    of all pictures together (metrics.json).
    """

    folder: Path
    task: Task
    facts: dict[str, Any]
    split: dict[str, Any]
    history: list[dict[str, Any]]
    per_case: list[PerCaseRow]
    settings: dict[str, Any]
    measured: dict[str, Any] = field(default_factory=dict)

    @property
    def status(self) -> str:
        """'running', 'first stage finished', 'finished' or 'failed'."""
        return str(self.facts["status"])

    @property
    def paper_crop(self) -> bool:
        """True where regions were centred with the labels, so that the numbers leak ground truth."""
        return bool(self.facts.get("paper_crop", False) or self.settings.get("paper_crop", False))

    @property
    def structures(self) -> dict[int, str]:
        """Class number -> name, without the background."""
        named = self.facts.get("structures") or {"1": "structure"}
        return {int(number): str(name) for number, name in named.items()}

    @property
    def method(self) -> str:
        """The name of its row in tables: the method's title, or what was given with --title."""
        return str(self.facts["method"])

    @cached_property
    def method_facts(self) -> MethodFacts:
        """What the run's method says of itself: stored in the run, or known by title of runs made before."""
        return facts_of_method(self.facts, self.folder / "run.json")

    @property
    def place_in_tables(self) -> tuple[int, str]:
        """A sort key: the place of its method, then the name of its row."""
        return self.method_facts.place, self.method.casefold()

    def located(self, address: str) -> str:
        """The address of a file of the split where the file is now; as stored where it is nowhere."""
        return located(address, self.folder, self.split.get(WRITTEN))

    def records(self, kind: str) -> list[dict[str, Any]]:
        """The history of one kind ('step', 'epoch', 'validation') in step order.

        A step that was repeated after a resume counts once, with its last values.
        """
        by_step = {
            record.get("step", record.get("epoch", 0)): record for record in self.history if record.get("kind") == kind
        }
        return [by_step[step] for step in sorted(by_step)]


def by_method(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Row of tables -> its runs, in the order of tables."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.method, []).append(run)
    return dict(sorted(groups.items(), key=lambda item: first_place(item[1])))


def first_place(runs: Sequence[Run]) -> tuple[int, str]:
    """Where runs of one row stand in tables."""
    return min(run.place_in_tables for run in runs)
