"""Means, spreads and counts of per-case metrics: of one run, and of the seeds of several."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from rich.table import Table

from medssl.core.errors import DataError
from medssl.report.comparison.method_order import method_rank
from medssl.report.runs import PerCaseRow, Run

STRUCTURE_METRICS = ("dice", "jaccard", "hd95_mm", "asd_mm", "assd_mm")
CASE_METRICS = ("pavpu", "uce", "ece", "mean_entropy_bits")
PICTURE_METRICS = ("error", "top5_error", "uncertainty_nats")
SCENE_METRICS = ("miou", "accuracy")
METRICS = (
    SCENE_METRICS + STRUCTURE_METRICS + CASE_METRICS + PICTURE_METRICS + ("mean_entropy_nats", "seconds_per_image")
)
TITLES = {
    "dice": "Dice",
    "jaccard": "Jaccard",
    "hd95_mm": "HD95 (mm)",
    "asd_mm": "ASD (mm)",
    "assd_mm": "ASSD (mm)",
    "pavpu": "PAvPU",
    "uce": "UCE",
    "ece": "ECE",
    "mean_entropy_bits": "Entropy (bits)",
    "miou": "mIoU",
    "accuracy": "Pixel accuracy",
    "mean_entropy_nats": "Entropy (nats)",
    "error": "Error",
    "top5_error": "Top-5 error",
    "uncertainty_nats": "Entropy (nats)",
    "seconds_per_image": "Time an image (s)",
}
COMPARISON_TITLES = {  # as in the thesis: what is better, and its name for HD95
    "dice": "Dice ↑",
    "jaccard": "Jaccard ↑",
    "hd95_mm": "95HD (mm) ↓",
    "asd_mm": "ASD (mm) ↓",
    "assd_mm": "ASSD (mm) ↓",
    "pavpu": "PAvPU ↑",
    "uce": "UCE ↓",
    "ece": "ECE ↓",
    "mean_entropy_bits": "Entropy (bits)",
    "miou": "mIoU ↑",
    "accuracy": "Pixel accuracy ↑",
    "mean_entropy_nats": "Entropy (nats)",
    "error": "Error ↓",
    "top5_error": "Top-5 error ↓",
    "uncertainty_nats": "Entropy (nats)",
    "seconds_per_image": "Time an image (s)",
}
DECIMALS = {"hd95_mm": 2, "asd_mm": 2, "assd_mm": 2, "uce": 4, "ece": 4, "mean_entropy_bits": 4}


@dataclass(frozen=True)
class Stat:
    """Mean, sample standard deviation (NaN below two values) and number of the finite values."""

    mean: float
    sd: float
    n: int

    @classmethod
    def of(cls, values: Iterable[float]) -> "Stat":
        """The statistic of the finite ones among `values`."""
        finite = np.array([value for value in values if math.isfinite(value)], dtype=float)
        mean = float(finite.mean()) if finite.size else math.nan
        return cls(mean, float(finite.std(ddof=1)) if finite.size > 1 else math.nan, int(finite.size))


@dataclass(frozen=True)
class SummaryRow:
    """One structure of a run, or 'mean' of its structures.

    missed: cases whose prediction is empty though the label is not; they count with Dice 0 and the diagonal of the
    scan as distance. Every metric carries its own n, as tables from elsewhere may lack values.
    """

    structure: str
    cases: int
    missed: int
    empty_labels: int
    stats: dict[str, Stat]


@dataclass(frozen=True)
class SeedValue:
    """The metrics of one run, averaged over cases and structures. missed: as in SummaryRow."""

    name: str
    seed: int
    split_hash: str
    status: str
    unlabelled: int
    missed: int
    means: dict[str, float]


@dataclass(frozen=True)
class ComparisonRow:
    """Runs that differ in their seed only; `stats` are over the seeds that were evaluated."""

    method: str
    dataset: str
    labelled: int
    paper_crop: bool
    stats: dict[str, Stat]
    seeds: list[SeedValue] = field(default_factory=list)

    @property
    def n_seeds(self) -> int:
        """How many seeds have numbers."""
        return sum(bool(seed.means) for seed in self.seeds)


def summarise(per_case: Sequence[PerCaseRow]) -> list[SummaryRow]:
    """One row per structure in order of appearance, and a row 'mean' last where there are several.

    The 'mean' row first averages a case over its structures (see case_mean), then summarises over cases; a case counts
    there as missed when any of its structures is.
    """
    structures = list(dict.fromkeys(row["structure"] for row in per_case))
    rows = [_summary_row(name, [row for row in per_case if row["structure"] == name]) for name in structures]
    return [*rows, _summary_row("mean", per_case)] if len(rows) > 1 else rows


def by_case(per_case: Sequence[PerCaseRow]) -> dict[str, list[PerCaseRow]]:
    """Case -> its rows, in order of appearance."""
    cases: dict[str, list[PerCaseRow]] = {}
    for row in per_case:
        cases.setdefault(row["case"], []).append(row)
    return cases


def case_mean(rows: Sequence[PerCaseRow], metric: str) -> float:
    """Mean of a metric over those structures of one case that have it; NaN where none has.

    NaN too where a one-sided empty structure has no distance: the mean of the others would hide the failure.
    """
    if any(row.get("empty") in ("prediction", "label") and math.isnan(row.get(metric, math.nan)) for row in rows):
        return math.nan
    return Stat.of(row.get(metric, math.nan) for row in rows).mean


def worst_first(per_case: Sequence[PerCaseRow]) -> list[str]:
    """The cases by rising mean Dice, those without a Dice last."""
    dice = {case: case_mean(rows, "dice") for case, rows in by_case(per_case).items()}
    return sorted(dice, key=lambda case: (math.isnan(dice[case]), dice[case], case))


def telling_cases(per_case: Sequence[PerCaseRow]) -> dict[str, str]:
    """The cases worth a picture by name: 'Best', 'Median' and 'Worst' by mean Dice; below three, those there are."""
    rows = by_case(per_case)
    order = [case for case in worst_first(per_case) if math.isfinite(case_mean(rows[case], "dice"))]
    if len(order) < 3:
        return dict(zip(("Worst", "Best") if len(order) == 2 else ("Case",), order, strict=False))
    return {"Best": order[-1], "Median": order[len(order) // 2], "Worst": order[0]}


def compare_runs(runs: Sequence[Run]) -> list[ComparisonRow]:
    """One row per (method, dataset, labelled), with mean and sd over seeds of the runs' means.

    In the order of the thesis' tables: by data set, the most labels first, then the methods as method_rank has them.
    Runs with paper_crop stand in rows of their own: their numbers must not be averaged with leak-free ones. A run
    without evaluation is listed among the seeds but not counted. Raises DataError where a seed comes twice in a row.
    """
    groups: dict[tuple[str, str, int, bool], list[Run]] = {}
    for run in runs:
        facts = run.facts
        key = (str(facts["method"]), str(facts["dataset"]), int(facts["labelled"]), run.paper_crop)
        groups.setdefault(key, []).append(run)
    order = sorted(groups, key=lambda key: (key[1], -key[2], key[3], method_rank(key[0])))
    return [_comparison_row(key, groups[key]) for key in order]


def number_text(value: float, metric: str = "dice") -> str:
    """A value with as many decimals as its metric deserves; an en dash where there is none."""
    return f"{value:.{DECIMALS.get(metric, 3)}f}" if math.isfinite(value) else "–"


def stat_text(stat: Stat, metric: str) -> str:
    """'mean ± sd', without the sd where it is not defined."""
    spread = f" ± {number_text(stat.sd, metric)}" if math.isfinite(stat.sd) else ""
    return number_text(stat.mean, metric) + spread


def summary_table(run: Run) -> Table:
    """The run's results as a table for the terminal, one metric per line so that it fits 80 columns."""
    return _scans_table(summarise(run.per_case)) if run.kind == "segmentation" else _pictures_table(run)


def _pictures_table(run: Run) -> Table:
    table = Table("metric", "value", title=f"Test {run.task.cases}", title_justify="left")
    for metric in METRICS:
        if metric in run.measured:
            table.add_row(TITLES[metric], f"{run.measured[metric]:.4f}")
    table.add_row(run.task.cases, str(len(run.per_case)))
    return table


def _scans_table(rows: Sequence[SummaryRow]) -> Table:
    table = Table(title="Mean ± sd over cases", title_justify="left")
    table.add_column("metric")
    for row in rows:
        table.add_column(row.structure, justify="right")
    for metric in METRICS:
        if any(row.stats[metric].n for row in rows):
            table.add_row(TITLES[metric], *(_stat_with_n(row, metric) for row in rows))
    table.add_section()
    table.add_row("cases", *(str(row.cases) for row in rows))
    table.add_row("missed", *(str(row.missed) for row in rows))
    table.add_row("empty labels", *(str(row.empty_labels) for row in rows))
    return table


def _stat_with_n(row: SummaryRow, metric: str) -> str:
    """A statistic, with its n where it is over fewer cases than the row has."""
    stat = row.stats[metric]
    return stat_text(stat, metric) + (f" (n={stat.n})" if stat.n != row.cases else "")


def _summary_row(structure: str, rows: Sequence[PerCaseRow]) -> SummaryRow:
    cases = by_case(rows)
    empties = [{row.get("empty", "") for row in case_rows} for case_rows in cases.values()]
    return SummaryRow(
        structure=structure,
        cases=len(cases),
        missed=sum("prediction" in found for found in empties),
        empty_labels=sum(bool(found & {"label", "both"}) for found in empties),
        stats={metric: Stat.of(case_mean(case_rows, metric) for case_rows in cases.values()) for metric in METRICS},
    )


def _comparison_row(key: tuple[str, str, int, bool], runs: Sequence[Run]) -> ComparisonRow:
    _refuse_repeated_seeds(runs)
    seeds = [_seed_value(run) for run in sorted(runs, key=lambda run: run.facts["seed"])]
    stats = {metric: Stat.of(seed.means.get(metric, math.nan) for seed in seeds) for metric in METRICS}
    return ComparisonRow(*key, stats=stats, seeds=seeds)


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
    overall = summarise(run.per_case)[-1:]
    means = {metric: stat.mean for row in overall for metric, stat in row.stats.items()}
    facts = run.facts
    return SeedValue(
        name=str(facts["name"]),
        seed=int(facts["seed"]),
        split_hash=str(facts.get("split_hash", "")),
        status=run.status,
        unlabelled=int(facts.get("unlabelled") or 0),
        missed=sum(row.missed for row in overall),
        means=means | {metric: run.measured[metric] for metric in METRICS if metric in run.measured},
    )
