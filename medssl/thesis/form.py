"""A table in the thesis' form: our numbers, the thesis' in brackets, and below it what a reader must know."""

import math
from collections.abc import Sequence

from medssl.metrics.catalogue import Metric
from medssl.report.grids import Cell, Column, Grid, GridRow
from medssl.report.tables import Stat
from medssl.thesis.contents import Dataset, Number, Thesis
from medssl.thesis.measured import Measured, MeasuredCell

IMPOSSIBLE = "!"


def result_grids(thesis: Thesis, measured: Measured) -> list[tuple[str, Grid]]:
    """Titles and tables: with one metric a column for each setting, else a table for each data set, metrics across."""
    if len(measured.plan.entry.metrics) == 1:
        return [(measured.plan.entry.title, _settings_grid(thesis, measured))]
    names = dict.fromkeys(cell.planned.setting.dataset for cell in measured.cells)
    return [(thesis.datasets[name].title, _metrics_grid(measured, name)) for name in names]


def lead(measured: Measured) -> str:
    """What a cell says."""
    unit = " In percent." if measured.plan.entry.percent else ""
    seeds = len(measured.plan.seeds)
    over = "Our mean ± sample standard deviation over seeds" if seeds > 1 else "Our value, of one seed"
    return (
        f"{over}; in brackets the thesis' number.{unit} L vs. U: labelled and unlabelled cases trained on. "
        f"“not there yet”: medssl has no such method. “quoted”: the thesis quotes a paper. {IMPOSSIBLE}: see below."
    )


def notes(thesis: Thesis, measured: Measured) -> list[str]:
    """What must be said below the table: size, stand-ins, what is missing, impossible numbers, other protocols."""
    plan = measured.plan
    texts = []
    if plan.bench:
        texts.append("Bench size: small networks, patches and few steps. Such numbers say nothing about the thesis'.")
    texts += [f"In place of {setting}: {stand_in}." for setting, stand_in in plan.stand_ins().items()]
    texts += [f"No data: {_missing_text(thesis.datasets[name])}." for name in plan.missing_datasets()]
    waiting = plan.unregistered_rows()
    if waiting:
        texts.append(f"Not there yet: {', '.join(waiting)}. The rows fill once such methods are registered.")
    for row, setting, number in plan.entry.impossible:
        texts.append(f"{IMPOSSIBLE} {row.name}, {setting}, {number.text}: {number.why_impossible}")
    by_note: dict[str, list[str]] = {}
    for row in plan.entry.rows:
        by_note.setdefault(row.note, []).append(row.name)
    texts += [f"{', '.join(names)}: {note}." for note, names in by_note.items() if note]
    return texts


def ours_text(stat: Stat | None, metric: Metric, percent: bool) -> str:
    """'0.893 ± 0.010', in percent with two decimals; empty without a value."""
    if stat is None or not stat.n:
        return ""
    if percent:
        spread = f" ± {100 * stat.sd:.2f}" if math.isfinite(stat.sd) else ""
        return f"{100 * stat.mean:.2f}{spread}"
    return metric.text(stat.mean) + (f" ± {metric.text(stat.sd)}" if math.isfinite(stat.sd) else "")


def _metrics_grid(measured: Measured, dataset: str) -> Grid:
    metrics = [measured.metric(name) for name in measured.plan.entry.metrics]
    percent = measured.plan.entry.percent
    lines = []
    labelled_before = None
    for cell in measured.cells:
        setting = cell.planned.setting
        if setting.dataset != dataset:
            continue
        numbers = cell.planned.row.numbers[setting.name]
        values = [_cell(cell, metric, number, percent) for metric, number in zip(metrics, numbers, strict=True)]
        names = [Cell(cell.planned.row.name), Cell(_scans_used(cell))]
        is_first = labelled_before not in (None, setting.labelled)
        lines.append(GridRow([*names, *values, Cell(_seeds_text([cell]))], first=is_first))
        labelled_before = setting.labelled
    titles = [metric.percent_title if percent else metric.comparison_title for metric in metrics]
    return Grid([Column("Method", "text"), *(Column(title) for title in ("L vs. U", *titles, "Seeds"))], lines)


def _settings_grid(thesis: Thesis, measured: Measured) -> Grid:
    entry = measured.plan.entry
    metric = measured.metric(entry.metrics[0])
    by_place = {(cell.planned.row.name, cell.planned.setting.name): cell for cell in measured.cells}
    lines = []
    for row in entry.rows:
        cells = [by_place.get((row.name, setting.name)) for setting in entry.settings]
        values = [
            Cell("–") if cell is None else _cell(cell, metric, row.numbers[setting.name][0], entry.percent)
            for cell, setting in zip(cells, entry.settings, strict=True)
        ]
        there = [cell for cell in cells if cell is not None]
        lines.append(GridRow([Cell(row.name), *values, Cell(_seeds_text(there))]))
    titles = [f"{thesis.datasets[setting.dataset].title}: {setting.text}" for setting in entry.settings]
    return Grid([Column("Method", "text"), *(Column(title) for title in (*titles, "Seeds"))], lines)


def _cell(cell: MeasuredCell, metric: Metric, number: Number, percent: bool) -> Cell:
    ours = ours_text(cell.stats.get(metric.name), metric, percent) or cell.lack or "–"
    doubt = f" {IMPOSSIBLE}" if number.why_impossible else ""
    return Cell(ours, f"({number.text}{doubt})")


def _scans_used(cell: MeasuredCell) -> str:
    """'16 vs. 144' as in the thesis; 0 for a method without unlabelled cases."""
    setting, method = cell.planned.setting, cell.planned.method
    return f"{setting.labelled} vs. {0 if method is not None and method.supervised else setting.unlabelled}"


def _seeds_text(cells: Sequence[MeasuredCell]) -> str:
    """How many seeds the cells have: '5', or '0–5' where they differ."""
    counts = sorted({len(cell.runs) for cell in cells})
    if not counts:
        return "–"
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]}–{counts[-1]}"


def _missing_text(dataset: Dataset) -> str:
    return f"{dataset.title} ({dataset.get})"
