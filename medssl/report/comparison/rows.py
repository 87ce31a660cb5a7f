"""Runs that differ in their seed only, in one row of a table, with means and spreads over the seeds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from medssl.core.errors import DataError
from medssl.methods.facts import MethodFacts
from medssl.metrics.catalogue import PAVPU, Metric
from medssl.report.pavpu_region import counted_where
from medssl.report.run import Run, Task, first_place
from medssl.report.tables import Stat, summarise


@dataclass(frozen=True)
class SeedValue:
    """The metrics of one run, averaged over cases and structures. missed: as in SummaryRow.

    pavpu_region: where PAvPU was counted, in words; empty where there is none, or the run is not of scans.
    """

    name: str
    seed: int
    split_hash: str
    status: str
    unlabelled: int
    missed: int
    means: dict[str, float]
    pavpu_region: str = ""


@dataclass(frozen=True)
class ComparisonRow:
    """Runs that differ in their seed only; `stats` are over the seeds that were evaluated.

    facts: of the method, which may have another title than the row.
    """

    method: str
    dataset: str
    labelled: int
    paper_crop: bool
    task: Task
    facts: MethodFacts
    stats: dict[str, Stat]
    seeds: list[SeedValue]

    @property
    def n_seeds(self) -> int:
        """How many seeds have numbers."""
        return len([seed for seed in self.seeds if seed.means])

    @property
    def missed(self) -> int:
        """Cases that miss a structure altogether, summed over the seeds."""
        return sum(seed.missed for seed in self.seeds)


def compare_runs(runs: Sequence[Run]) -> list[ComparisonRow]:
    """One row per (method, dataset, labelled), with mean and sd over seeds of the runs' means.

    By data set, the most labels first, then the methods by their place. Runs with paper_crop stand in rows of their
    own: their numbers must not be averaged with leak-free ones. A run without evaluation is listed among the seeds but
    not counted. Raises DataError where a seed comes twice in a row.
    """
    groups: dict[tuple[str, str, int, bool], list[Run]] = {}
    for run in runs:
        key = (run.method, str(run.facts["dataset"]), int(run.facts["labelled"]), run.paper_crop)
        groups.setdefault(key, []).append(run)
    return [_comparison_row(group) for group in sorted(groups.values(), key=_place)]


def measured_metrics(rows: Sequence[ComparisonRow]) -> list[Metric]:
    """The metrics any of the rows has a number for."""
    return [metric for metric in rows[0].task.metrics if has_numbers(rows, metric)] if rows else []


def has_numbers(rows: Sequence[ComparisonRow], metric: Metric) -> bool:
    return any(row.stats[metric.name].n for row in rows)


def _place(group: Sequence[Run]) -> tuple[str, int, bool, tuple[int, str]]:
    """A sort key for the runs of a row."""
    run = group[0]
    return str(run.facts["dataset"]), -int(run.facts["labelled"]), run.paper_crop, first_place(group)


def _comparison_row(runs: Sequence[Run]) -> ComparisonRow:
    _refuse_repeated_seeds(runs)
    runs = sorted(runs, key=lambda run: run.facts["seed"])
    first = runs[0]
    seeds = [_seed_value(run) for run in runs]
    return ComparisonRow(
        method=first.method,
        dataset=str(first.facts["dataset"]),
        labelled=int(first.facts["labelled"]),
        paper_crop=first.paper_crop,
        task=first.task,
        facts=first.method_facts,
        stats={
            metric.name: Stat.of(seed.means.get(metric.name, math.nan) for seed in seeds)
            for metric in first.task.metrics
        },
        seeds=seeds,
    )


def _refuse_repeated_seeds(runs: Sequence[Run]) -> None:
    first: dict[int, Run] = {}
    for run in runs:
        other = first.setdefault(run.facts["seed"], run)
        if other is not run:
            raise DataError(
                f"{other.folder} and {run.folder}: same method, dataset, labelled cases and seed {run.facts['seed']}. "
                "Compare one of them: a repeated seed would make the spread look smaller than it is."
            )


def _seed_value(run: Run) -> SeedValue:
    metrics, facts = run.task.metrics, run.facts
    summary = summarise(run.per_case, metrics)
    overall = summary[-1] if summary else None  # none of a run that was not evaluated
    means = {} if overall is None else {name: stat.mean for name, stat in overall.stats.items()}
    measured = {metric.name: run.measured[metric.name] for metric in metrics if metric.name in run.measured}
    return SeedValue(
        name=str(facts["name"]),
        seed=int(facts["seed"]),
        split_hash=str(facts.get("split_hash", "")),
        status=run.status,
        unlabelled=int(facts.get("unlabelled") or 0),
        missed=0 if overall is None else overall.missed,
        means=means | measured,
        pavpu_region=counted_where(run) if math.isfinite(means.get(PAVPU.name, math.nan)) else "",
    )
