"""Means, spreads and counts of the per-case metrics of one run."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from rich.table import Table

from medssl.metrics.catalogue import DICE, LATENT_SHARE, PAVPU, SCAN_METRICS, Metric
from medssl.report.pavpu_region import counted_where
from medssl.report.run import PerCaseRow, Run


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


def summarise(per_case: Sequence[PerCaseRow], metrics: Sequence[Metric] = SCAN_METRICS) -> list[SummaryRow]:
    """One row per structure in order of appearance, and a row 'mean' last where there are several.

    The 'mean' row first averages a case over its structures (see case_mean), then summarises over cases; a case counts
    there as missed when any of its structures is.
    """
    structures = list(dict.fromkeys(row["structure"] for row in per_case))
    rows = [_summary_row(name, [row for row in per_case if row["structure"] == name], metrics) for name in structures]
    return [*rows, _summary_row("mean", per_case, metrics)] if len(rows) > 1 else rows


def by_case(per_case: Sequence[PerCaseRow]) -> dict[str, list[PerCaseRow]]:
    """Case -> its rows, in order of appearance."""
    cases: dict[str, list[PerCaseRow]] = {}
    for row in per_case:
        cases.setdefault(row["case"], []).append(row)
    return cases


def case_mean(rows: Sequence[PerCaseRow], metric: Metric) -> float:
    """Mean of a metric over those structures of one case that have it; NaN where none has.

    NaN too where a one-sided empty structure has no distance: the mean of the others would hide the failure.
    """
    for row in rows:
        if row.get("empty") in ("prediction", "label") and math.isnan(row.get(metric.name, math.nan)):
            return math.nan
    return Stat.of(row.get(metric.name, math.nan) for row in rows).mean


def worst_first(per_case: Sequence[PerCaseRow]) -> list[str]:
    """The cases by rising mean Dice, those without a Dice last."""
    dice = {case: case_mean(rows, DICE) for case, rows in by_case(per_case).items()}
    return sorted(dice, key=lambda case: (math.isnan(dice[case]), dice[case], case))


def telling_cases(per_case: Sequence[PerCaseRow]) -> dict[str, str]:
    """The cases worth a picture by name: 'Best', 'Median' and 'Worst' by mean Dice; below three, those there are."""
    rows = by_case(per_case)
    order = [case for case in worst_first(per_case) if math.isfinite(case_mean(rows[case], DICE))]
    if not order:
        return {}
    if len(order) == 1:
        return {"Case": order[0]}
    if len(order) == 2:
        return {"Worst": order[0], "Best": order[1]}
    return {"Best": order[-1], "Median": order[len(order) // 2], "Worst": order[0]}


def stat_text(stat: Stat, metric: Metric) -> str:
    """'mean ± sd', without the sd where it is not defined."""
    spread = f" ± {metric.text(stat.sd)}" if math.isfinite(stat.sd) else ""
    return metric.text(stat.mean) + spread


def summary_table(run: Run) -> Table:
    """The run's results as a table for the terminal, one metric per line so that it fits 80 columns."""
    return run.task.summary_table(run)


def structures_table(run: Run) -> Table:
    """Mean and spread over the cases for each structure, with the counts of cases."""
    rows = summarise(run.per_case, run.task.metrics)
    where = counted_where(run)
    caption = f"{PAVPU.label} over {where}" if where and any(row.stats[PAVPU.name].n for row in rows) else None
    table = Table(title="Mean ± sd over cases", title_justify="left", caption=caption, caption_justify="left")
    table.add_column("metric")
    for row in rows:
        table.add_column(row.structure, justify="right")
    for metric in run.task.metrics:
        if any(row.stats[metric.name].n for row in rows):
            table.add_row(metric.title, *(_stat_with_n(row, metric) for row in rows))
    if LATENT_SHARE.name in run.measured:  # of all cases and structures together
        others = [""] * (len(rows) - 1)
        table.add_row(LATENT_SHARE.title, *others, LATENT_SHARE.text(run.measured[LATENT_SHARE.name]))
    table.add_section()
    table.add_row("cases", *(str(row.cases) for row in rows))
    table.add_row("missed", *(str(row.missed) for row in rows))
    table.add_row("empty labels", *(str(row.empty_labels) for row in rows))
    return table


def measured_table(run: Run) -> Table:
    """What was measured of all cases together, and how many there are."""
    table = Table("metric", "value", title=f"Test {run.task.cases}", title_justify="left")
    for metric in run.task.metrics:
        if metric.name in run.measured:
            table.add_row(metric.title, f"{run.measured[metric.name]:.4f}")
    table.add_row(run.task.cases, str(len(run.per_case)))
    return table


def _stat_with_n(row: SummaryRow, metric: Metric) -> str:
    """A statistic, with its n where it is over fewer cases than the row has."""
    stat = row.stats[metric.name]
    return stat_text(stat, metric) + (f" (n={stat.n})" if stat.n != row.cases else "")


def _summary_row(structure: str, rows: Sequence[PerCaseRow], metrics: Sequence[Metric]) -> SummaryRow:
    cases = by_case(rows)
    empty_sides = [{row.get("empty", "") for row in case_rows} for case_rows in cases.values()]
    return SummaryRow(
        structure=structure,
        cases=len(cases),
        missed=len([sides for sides in empty_sides if "prediction" in sides]),
        empty_labels=len([sides for sides in empty_sides if "label" in sides or "both" in sides]),
        stats={metric.name: Stat.of(case_mean(rows, metric) for rows in cases.values()) for metric in metrics},
    )
