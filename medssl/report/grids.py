"""The tables of the HTML pages: rows of ready text, without any markup."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from medssl.report.runs import PerCaseRow
from medssl.report.tables import (
    CASE_METRICS,
    COMPARISON_TITLES,
    METRICS,
    STRUCTURE_METRICS,
    TITLES,
    ComparisonRow,
    Stat,
    SummaryRow,
    by_case,
    number_text,
    worst_first,
)

MEANINGS = {
    "pavpu": "share of patches that are accurate and certain, or wrong and uncertain; higher is better",
    "uce": "expected gap between error rate and uncertainty; lower is better",
    "ece": "expected gap between accuracy and confidence; lower is better",
    "mean_entropy_bits": "predictive entropy, mean over the voxels of a case",
}
COLUMN_TITLES = TITLES | {
    "case": "Case",
    "structure": "Structure",
    "empty": "Empty",
    "label_ml": "Label (ml)",
    "predicted_ml": "Predicted (ml)",
    "seconds": "Time (s)",
}
COLUMN_DECIMALS = {"label_ml": 1, "predicted_ml": 1, "seconds": 1}
TEXT = ("case", "structure", "empty")


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
class Row:
    """overall: a row that sums up the others. first: the first of a group of rows."""

    cells: list[Cell]
    overall: bool = False
    first: bool = False


@dataclass(frozen=True)
class Grid:
    """A table as the pages draw it; every row has a cell for each column."""

    columns: list[Column]
    rows: list[Row]


def accuracy_grid(summary: Sequence[SummaryRow]) -> Grid:
    """Overlap and distances per structure, with counts of cases, missed cases and empty labels."""
    names = [Column("Structure", "text"), *(Column(TITLES[metric]) for metric in STRUCTURE_METRICS)]
    rows = []
    for row in summary:
        stats = [stat_cell(row.stats[metric], metric, row.cases) for metric in STRUCTURE_METRICS]
        counts = [Cell(str(count)) for count in (row.cases, row.missed, row.empty_labels)]
        rows.append(Row([Cell(row.structure), *stats, *counts], overall=row.structure == "mean"))
    return Grid([*names, Column("Cases"), Column("Missed"), Column("Empty labels")], rows)


def uncertainty_grid(overall: SummaryRow) -> Grid | None:
    """The case-level metrics of a run and what each says; None where the run has none."""
    measured = [metric for metric in CASE_METRICS if overall.stats[metric].n]
    rows = []
    for metric in measured:
        stat = overall.stats[metric]
        rows.append(
            Row([Cell(TITLES[metric]), stat_cell(stat, metric, stat.n), Cell(str(stat.n)), Cell(MEANINGS[metric])])
        )
    columns = [Column("Measure", "text"), Column("Mean ± sd"), Column("Cases"), Column("What it says", "text wide")]
    return Grid(columns, rows) if rows else None


def every_case_grid(per_case: Sequence[PerCaseRow]) -> Grid:
    """Every column of per_case.csv, the case with the lowest mean Dice first."""
    names = list(per_case[0])
    cases = by_case(per_case)
    rows = [Row([_case_cell(row, name) for name in names]) for case in worst_first(per_case) for row in cases[case]]
    return Grid([Column(COLUMN_TITLES.get(name, name), "text" if name in TEXT else "") for name in names], rows)


def seeds_grid(rows: Sequence[ComparisonRow]) -> Grid:
    """One line per run."""
    metrics = measured_metrics(rows)
    texts = [Column(title, "text") for title in ("Dataset", "Method", "Run", "Split", "Status")]
    lines = []
    for row in rows:
        for seed in row.seeds:
            keys = [Cell(row.dataset), method_cell(row), Cell(seed.name), Cell(seed.split_hash[:8]), Cell(seed.status)]
            numbers = [Cell(number_text(seed.means.get(metric, math.nan), metric)) for metric in metrics]
            lines.append(Row([*keys, Cell(str(row.labelled)), Cell(str(seed.seed)), *numbers]))
    return Grid([*texts, Column("Labelled"), Column("Seed"), *comparison_columns(metrics)], lines)


def comparison_columns(metrics: Sequence[str]) -> list[Column]:
    """The columns of metrics where methods are compared."""
    return [Column(COMPARISON_TITLES[metric]) for metric in metrics]


def measured_metrics(rows: Sequence[ComparisonRow]) -> list[str]:
    """The metrics any of the rows has a number for."""
    return [metric for metric in METRICS if any(row.stats[metric].n for row in rows)]


def stat_cell(stat: Stat, metric: str, expected: int) -> Cell:
    """Mean, sd and, where some of the `expected` values are missing, n."""
    spread = f"± {number_text(stat.sd, metric)}" if math.isfinite(stat.sd) else ""
    count = f"n = {stat.n}" if 0 < stat.n < expected else ""
    return Cell(number_text(stat.mean, metric), ", ".join(part for part in (spread, count) if part))


def method_cell(row: ComparisonRow) -> Cell:
    """The method's name, marked where its numbers leak ground truth."""
    return Cell(row.method, "paper_crop" if row.paper_crop else "")


def _case_cell(row: PerCaseRow, name: str) -> Cell:
    value = row[name]
    if name in TEXT:
        return Cell(str(value))
    if name in COLUMN_DECIMALS and math.isfinite(value):
        return Cell(f"{value:.{COLUMN_DECIMALS[name]}f}")
    bar = round(100 * min(max(value, 0.0), 1.0)) if name == "dice" and math.isfinite(value) else None
    return Cell(number_text(value, name), bar=bar)
