"""The tables of results as the thesis has them: what was trained on how many scans or pictures, how well it did."""

import math
from collections.abc import Sequence

from medssl.report.comparison.method_order import is_supervised
from medssl.report.grids import Cell, Column, Grid, Row, comparison_columns, measured_metrics, method_cell, stat_cell
from medssl.report.tables import ComparisonRow, Stat

PERCENT_TITLES = {"error": "Error (%) ↓", "top5_error": "Top-5 error (%) ↓", "uce": "UCE (%) ↓"}


def results_lead(rows: Sequence[ComparisonRow]) -> str:
    """What the columns of results_grid mean."""
    missed = "Missed: cases with a structure that the prediction lacks altogether, summed over the seeds."
    if are_pictures(rows):
        return (
            "Mean ± sample standard deviation over seeds, in percent. L vs. U: labelled and unlabelled pictures "
            "trained on. UCE: gap between uncertainty (entropy as a share of its largest value) and error, in bins."
        )
    if any(row.stats["miou"].n for row in rows):
        return (
            "Mean ± sample standard deviation over seeds. mIoU is over all pixels of all test images; differences are "
            "of the mean IoU of each image. L vs. U: labelled and unlabelled images trained on."
        )
    return (
        "Mean ± sample standard deviation over seeds of each run's mean over cases and structures. "
        "L vs. U: labelled and unlabelled scans trained on. "
        f"{missed if _any_missed(rows) else 'No structure was missed altogether.'}"
    )


def scans_used(row: ComparisonRow) -> str:
    """'16 vs. 144' for 16 labelled and 144 unlabelled scans; the second number is 0 for supervised methods."""
    numbers = sorted({0 if is_supervised(row.method) else seed.unlabelled for seed in row.seeds})
    unlabelled = str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}–{numbers[-1]}"
    return f"{row.labelled} vs. {unlabelled}"


def by_dataset(rows: Sequence[ComparisonRow]) -> dict[str, list[ComparisonRow]]:
    """Data set -> its rows, both in the order they come."""
    datasets: dict[str, list[ComparisonRow]] = {}
    for row in rows:
        datasets.setdefault(row.dataset, []).append(row)
    return datasets


def are_pictures(rows: Sequence[ComparisonRow]) -> bool:
    return any(row.stats["error"].n for row in rows)


def results_grid(rows: Sequence[ComparisonRow], metrics: Sequence[str] | None = None) -> Grid:
    """One line per method and number of labels of a data set. metrics: to show; None for all that were measured.

    Of pictures always the measures of tables 4.1 to 4.3, in percent as there.
    """
    if are_pictures(rows):
        return _pictures_grid(rows)
    shown = measured_metrics(rows) if metrics is None else metrics
    lines = []
    for row, previous in zip(rows, [None, *rows], strict=False):
        stats = [stat_cell(row.stats[metric], metric, row.n_seeds) for metric in shown]
        missed = [Cell(str(_missed(row)) if row.n_seeds else "–")] if _any_missed(rows) else []
        cells = [method_cell(row), Cell(scans_used(row)), *stats, *missed, Cell(str(row.n_seeds))]
        lines.append(Row(cells, first=previous is not None and row.labelled != previous.labelled))
    counts = [Column("Missed")] * _any_missed(rows) + [Column("Seeds")]
    return Grid([Column("Method", "text"), Column("L vs. U"), *comparison_columns(shown), *counts], lines)


def _pictures_grid(rows: Sequence[ComparisonRow]) -> Grid:
    shown = [metric for metric in PERCENT_TITLES if any(row.stats[metric].n for row in rows)]
    lines = []
    for row, previous in zip(rows, [None, *rows], strict=False):
        stats = [_percent_cell(row.stats[metric]) for metric in shown]
        cells = [method_cell(row), Cell(scans_used(row)), *stats, Cell(str(row.n_seeds))]
        lines.append(Row(cells, first=previous is not None and row.labelled != previous.labelled))
    titles = [Column(PERCENT_TITLES[metric]) for metric in shown]
    return Grid([Column("Method", "text"), Column("L vs. U"), *titles, Column("Seeds")], lines)


def _percent_cell(stat: Stat) -> Cell:
    spread = f"± {100 * stat.sd:.2f}" if math.isfinite(stat.sd) else ""
    return Cell(f"{100 * stat.mean:.2f}" if stat.n else "–", spread)


def _missed(row: ComparisonRow) -> int:
    return sum(seed.missed for seed in row.seeds)


def _any_missed(rows: Sequence[ComparisonRow]) -> bool:
    return any(_missed(row) for row in rows)
