"""The tables of the HTML pages: rows of ready text, without any markup."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from medssl.metrics.catalogue import (
    CASE_METRICS,
    DICE,
    PAVPU,
    SCAN_COLUMNS,
    SCAN_METRICS,
    STRUCTURE_METRICS,
    VOXEL_METRICS,
    Metric,
)
from medssl.report.run import PerCaseRow
from medssl.report.tables import Stat, SummaryRow, by_case, worst_first

TEXT_TITLES = {"case": "Case", "structure": "Structure", "empty": "Empty"}
KNOWN_COLUMNS = {metric.name: metric for metric in (*SCAN_METRICS, *SCAN_COLUMNS)}


@dataclass(frozen=True)
class Column:
    """kind: '' for numbers, 'list' for several in a cell, 'text' for names, 'text wide' for sentences."""

    title: str
    kind: str = ""

    @property
    def is_text(self) -> bool:
        return self.kind.startswith("text")


@dataclass(frozen=True)
class Cell:
    """small: what stands muted beside the text. bar: percent of a bar drawn before it. strong: stands out."""

    text: str
    small: str = ""
    bar: int | None = None
    strong: bool = False


@dataclass(frozen=True)
class GridRow:
    """overall: a row that sums up the others. first: the first of a group of rows."""

    cells: list[Cell]
    overall: bool = False
    first: bool = False


@dataclass(frozen=True)
class Grid:
    """A table as the pages draw it; every row has a cell for each column."""

    columns: list[Column]
    rows: list[GridRow]


def accuracy_grid(summary: Sequence[SummaryRow]) -> Grid:
    """Overlap and distances per structure, with counts of cases, missed cases and empty labels.

    Distances in voxels are there where they were measured.
    """
    in_voxels = [metric for metric in VOXEL_METRICS if any(row.stats[metric.name].n for row in summary)]
    shown = (*STRUCTURE_METRICS, *in_voxels)
    names = [Column("Structure", "text"), *(Column(metric.title) for metric in shown)]
    rows = []
    for row in summary:
        stats = [stat_cell(row.stats[metric.name], metric, row.cases) for metric in shown]
        counts = [Cell(str(count)) for count in (row.cases, row.missed, row.empty_labels)]
        rows.append(GridRow([Cell(row.structure), *stats, *counts], overall=row.structure == "mean"))
    return Grid([*names, Column("Cases"), Column("Missed"), Column("Empty labels")], rows)


def uncertainty_grid(overall: SummaryRow, pavpu_region: str = "") -> Grid | None:
    """The case-level metrics of a run and what each says; None where the run has none. pavpu_region: in words."""
    rows = []
    for metric in CASE_METRICS:
        stat = overall.stats[metric.name]
        if stat.n:
            where = f"; counted over {pavpu_region}" if metric is PAVPU and pavpu_region else ""
            meaning = Cell(metric.meaning + where)
            cells = [Cell(metric.title), stat_cell(stat, metric, stat.n), Cell(str(stat.n)), meaning]
            rows.append(GridRow(cells))
    columns = [Column("Measure", "text"), Column("Mean ± sd"), Column("Cases"), Column("What it says", "text wide")]
    return Grid(columns, rows) if rows else None


def every_case_grid(per_case: Sequence[PerCaseRow]) -> Grid:
    """Every column of per_case.csv, the case with the lowest mean Dice first."""
    names = list(per_case[0])
    cases = by_case(per_case)
    ordered = [row for case in worst_first(per_case) for row in cases[case]]
    rows = [GridRow([_case_cell(row, name) for name in names]) for row in ordered]
    return Grid([_case_column(name) for name in names], rows)


def stat_cell(stat: Stat, metric: Metric, expected: int) -> Cell:
    """Mean, sd and, where some of the `expected` values are missing, n."""
    spread = f"± {metric.text(stat.sd)}" if math.isfinite(stat.sd) else ""
    count = f"n = {stat.n}" if 0 < stat.n < expected else ""
    return Cell(metric.text(stat.mean), ", ".join(part for part in (spread, count) if part))


def _case_column(name: str) -> Column:
    if name in TEXT_TITLES:
        return Column(TEXT_TITLES[name], "text")
    return Column(_known_or_plain(name).title)


def _case_cell(row: PerCaseRow, name: str) -> Cell:
    value = row[name]
    if name in TEXT_TITLES:
        return Cell(str(value))
    bar = None
    if name == DICE.name and math.isfinite(value):
        bar = round(100 * min(max(value, 0.0), 1.0))
    return Cell(_known_or_plain(name).text(value), bar=bar)


def _known_or_plain(name: str) -> Metric:
    """The metric of a column; one that another program added is shown by its name."""
    return KNOWN_COLUMNS.get(name, Metric(name, name))
