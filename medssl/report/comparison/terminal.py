"""The tables of a comparison for the terminal."""

from collections.abc import Sequence
from dataclasses import replace

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from medssl.report.comparison.compare import Comparison
from medssl.report.comparison.difference_tables import DifferenceTable, difference_tables, reading_help
from medssl.report.comparison.rows import ComparisonRow, measured_metrics
from medssl.report.comparison.thesis_tables import by_dataset, results_grid, results_lead
from medssl.report.grids import Grid

NAMES_WIDTH, METRIC_WIDTH = 38, 14
SMALL_WIDTH = 110


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print results, differences and what must be said about them."""
    for notice in comparison.notices:
        console.print(Text(notice))
    for table in results_tables(comparison.rows, console.width):
        console.print(table)
    console.print(Text(results_lead(comparison.rows)))
    for differences in difference_tables(comparison.differences):
        console.print(difference_table(differences, console.width))
    for text in reading_help(comparison.differences):
        console.print(Text(text))


def results_tables(rows: Sequence[ComparisonRow], width: int = 80) -> list[Table]:
    """One table per data set, with as many metrics as `width` columns hold; the page has all."""
    room = max(2, (width - NAMES_WIDTH) // METRIC_WIDTH)
    tables = []
    for dataset, dataset_rows in by_dataset(rows).items():
        measured = measured_metrics(dataset_rows)
        fitting = sorted(measured, key=lambda metric: metric.importance)[:room]
        grid = results_grid(dataset_rows, [metric for metric in measured if metric in fitting])
        tables.append(grid_table(grid, dataset))
    return tables


def difference_table(table: DifferenceTable, width: int = 80) -> Table:
    """A table of differences with its notes below; without the numbers of seeds and cases where they do not fit."""
    caption = "\n".join([table.lead, *table.notes])
    last = len(table.grid.columns) if width >= SMALL_WIDTH else -2
    rows = [replace(row, cells=row.cells[:last]) for row in table.grid.rows]
    return grid_table(Grid(table.grid.columns[:last], rows), table.title, caption)


def grid_table(grid: Grid, title: str, caption: str = "") -> Table:
    """A grid in the terminal; names are shown as they are, never read as markup."""
    table = Table(
        title=Text(title),
        caption=Text(caption) if caption else None,
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    lines = [[f"{cell.text} {cell.small}".strip() for cell in row.cells] for row in grid.rows]
    for column, *cells in zip(grid.columns, *lines, strict=True):
        whole = [word for cell in cells for word in cell.split()] if column.kind else cells
        width = max(map(len, [*column.title.split(), *whole]))
        table.add_column(Text(column.title), justify="left" if column.is_text else "right", min_width=width)
    for row, line in zip(grid.rows, lines, strict=True):
        if row.first:
            table.add_section()
        table.add_row(*map(Text, line))
    return table
