"""The tables of results as the thesis has them: what was trained on how many scans or pictures, how well it did."""

import math
from collections.abc import Sequence

from medssl.metrics.catalogue import Metric
from medssl.report.comparison.rows import ComparisonRow, has_numbers, measured_metrics
from medssl.report.grids import Cell, Column, Grid, GridRow, stat_cell
from medssl.report.tables import Stat


def results_lead(rows: Sequence[ComparisonRow]) -> str:
    """What the columns of results_grid mean."""
    return rows[0].task.results_lead(rows) if rows else ""


def scans_lead(rows: Sequence[ComparisonRow]) -> str:
    """What the columns of results_grid mean where scans are segmented."""
    missed = "No structure was missed altogether."
    if _any_missed(rows):
        missed = "Missed: cases with a structure that the prediction lacks altogether, summed over the seeds."
    return (
        "Mean ± sample standard deviation over seeds of each run's mean over cases and structures. "
        f"L vs. U: labelled and unlabelled scans trained on. {missed}"
    )


def scans_used(row: ComparisonRow) -> str:
    """'16 vs. 144' for 16 labelled and 144 unlabelled scans; 0 for methods that do not learn from unlabelled ones."""
    if not row.facts.learns_from_unlabelled:
        return f"{row.labelled} vs. 0"
    numbers = sorted({seed.unlabelled for seed in row.seeds})
    unlabelled = str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}–{numbers[-1]}"
    return f"{row.labelled} vs. {unlabelled}"


def by_dataset(rows: Sequence[ComparisonRow]) -> dict[str, list[ComparisonRow]]:
    """Data set -> its rows, both in the order they come."""
    datasets: dict[str, list[ComparisonRow]] = {}
    for row in rows:
        datasets.setdefault(row.dataset, []).append(row)
    return datasets


def results_grid(rows: Sequence[ComparisonRow], metrics: Sequence[Metric] | None = None) -> Grid:
    """One line per method and number of labels of a data set. metrics: to show; None for all that were measured.

    Of a task with results in percent always the metrics it has them of.
    """
    percent = [metric for metric in rows[0].task.percent if has_numbers(rows, metric)] if rows else []
    shown = percent or (measured_metrics(rows) if metrics is None else metrics)
    with_missed = _any_missed(rows)
    lines = []
    labelled_before = None
    for row in rows:
        cells = [method_cell(row), Cell(scans_used(row))]
        for metric in shown:
            stat = row.stats[metric.name]
            cells.append(_percent_cell(stat) if percent else stat_cell(stat, metric, row.n_seeds))
        if with_missed:
            cells.append(Cell(str(row.missed) if row.n_seeds else "–"))
        cells.append(Cell(str(row.n_seeds)))
        lines.append(GridRow(cells, first=labelled_before not in (None, row.labelled)))
        labelled_before = row.labelled
    titles = [metric.percent_title if percent else metric.comparison_title for metric in shown]
    counts = ["Missed", "Seeds"] if with_missed else ["Seeds"]
    return Grid([Column("Method", "text"), *(Column(title) for title in ("L vs. U", *titles, *counts))], lines)


def seeds_grid(rows: Sequence[ComparisonRow]) -> Grid:
    """One line per run."""
    metrics = measured_metrics(rows)
    lines = []
    for row in rows:
        for seed in row.seeds:
            keys = [Cell(row.dataset), method_cell(row), Cell(seed.name), Cell(seed.split_hash[:8]), Cell(seed.status)]
            numbers = [Cell(metric.text(seed.means.get(metric.name, math.nan))) for metric in metrics]
            lines.append(GridRow([*keys, Cell(str(row.labelled)), Cell(str(seed.seed)), *numbers]))
    texts = [Column(title, "text") for title in ("Dataset", "Method", "Run", "Split", "Status")]
    titles = ["Labelled", "Seed", *(metric.comparison_title for metric in metrics)]
    return Grid([*texts, *(Column(title) for title in titles)], lines)


def method_cell(row: ComparisonRow) -> Cell:
    """The method's name, marked where its numbers leak ground truth."""
    return Cell(row.method, "paper_crop" if row.paper_crop else "")


def _percent_cell(stat: Stat) -> Cell:
    spread = f"± {100 * stat.sd:.2f}" if math.isfinite(stat.sd) else ""
    return Cell(f"{100 * stat.mean:.2f}" if stat.n else "–", spread)


def _any_missed(rows: Sequence[ComparisonRow]) -> bool:
    return any(row.missed for row in rows)
