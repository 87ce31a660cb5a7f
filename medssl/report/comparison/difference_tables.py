"""The tables of differences to a baseline, and the sentences without which they would say too much."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from medssl.metrics.catalogue import SHARE, Metric, Unit
from medssl.report.comparison.bootstrap import RESAMPLES, Interval, few_seeds_text
from medssl.report.comparison.differences import Difference
from medssl.report.grids import Cell, Column, Grid, GridRow

COLUMNS = [
    Column("Method", "text"),
    Column("L"),
    Column("Difference"),
    Column("95 %: seeds and cases"),
    Column("95 %: cases alone"),
    Column("Each seed", "list"),
    Column("of seed"),
    Column("Cases"),
]


@dataclass(frozen=True)
class DifferenceTable:
    """Every method minus one baseline on one data set, in one metric."""

    title: str
    lead: str
    grid: Grid
    notes: list[str]


def difference_tables(rows: Sequence[Difference]) -> list[DifferenceTable]:
    """One table per data set, metric and baseline, in the order they come."""
    tables: dict[tuple[str, Metric, str], list[Difference]] = {}
    for row in rows:
        tables.setdefault((row.dataset, row.metric, row.baseline), []).append(row)
    return [_table(*key, differences) for key, differences in tables.items()]


def reading_help(rows: Sequence[Difference]) -> list[str]:
    """How the tables of differences are to be read, one paragraph each."""
    if not rows:
        return []
    seeds = [len(row.per_seed) for row in rows if row.per_seed]
    few = few_seeds_text(seeds)
    compared = len([row for row in rows if math.isfinite(row.over_seeds_and_cases.low)])
    chance = f"{compared} differences are tested here, and nothing corrects for their number." if compared > 1 else ""
    help_texts = [
        "Method minus baseline, paired by test case and seed; the structures of a case are averaged first. "
        "L: labelled scans.",
        f"“Seeds and cases”: seeds and, independently, test cases are drawn anew up to {RESAMPLES:,} times (crossed "
        "bootstrap, percentiles; scans of one patient are drawn together), so it covers what a seed draws (labelled "
        "scans, initial weights) and other patients. “Cases alone”: seeds averaged, test cases drawn anew, so it "
        "covers other patients but not another training. * marks a difference whose interval over seeds and cases "
        "excludes zero.",
    ]
    return [*help_texts, " ".join(text for text in (few, chance) if text)] if few or chance else help_texts


def signed(value: float, unit: Unit) -> str:
    """'+1.20' or '−0.35'; zero has no sign; an en dash where there is no number."""
    if not math.isfinite(value):
        return "–"
    text = f"{value:+.{unit.decimals}f}"
    return text[1:] if float(text) == 0 else text.replace("-", "−")


def interval_text(interval: Interval, unit: Unit) -> str:
    """'[+0.35, +1.20]'; an en dash where there is none."""
    if not math.isfinite(interval.low):
        return "–"
    return f"[{signed(interval.low, unit)}, {signed(interval.high, unit)}]"


def _table(dataset: str, metric: Metric, baseline: str, rows: Sequence[Difference]) -> DifferenceTable:
    unit = metric.unit.difference
    meaning = "In points: hundredths." if metric.unit is SHARE else f"In {unit}."
    lead = f"{meaning} {metric.better.capitalize()} is better."
    lines = [
        _line(row, first=previous is not None and row.labelled != previous.labelled)
        for row, previous in zip(rows, [None, *rows], strict=False)
    ]
    notes = [f"{_name(row)}, {row.labelled} labelled: {'; '.join(row.notes)}." for row in rows if row.notes]
    title = f"{dataset}: {metric.comparison_label} against {baseline} ({unit})"
    return DifferenceTable(title, lead, Grid(COLUMNS, lines), notes)


def _line(row: Difference, first: bool) -> GridRow:
    unit = row.metric.unit
    patients = f"{row.patients} patients" if row.patients != row.cases else ""
    cells = [
        Cell(row.method, "paper_crop" if row.paper_crop else ""),
        Cell(str(row.labelled)),
        Cell(signed(row.mean, unit) + (" *" if row.is_clear else ""), strong=row.is_clear),
        Cell(interval_text(row.over_seeds_and_cases, unit)),
        Cell(interval_text(row.over_cases, unit)),
        Cell(", ".join(signed(value, unit) for value in row.per_seed.values()) or "–"),
        Cell(", ".join(map(str, row.per_seed)) or "–"),
        Cell(str(row.cases), patients),
    ]
    return GridRow(cells, first=first)


def _name(row: Difference) -> str:
    return f"{row.method}, paper_crop" if row.paper_crop else row.method
