"""The tables of a comparison as Markdown, ready to be put into a README."""

import re
from collections.abc import Sequence
from pathlib import Path

from medssl.core.files import write_text_atomically
from medssl.report.comparison.compare import Comparison
from medssl.report.comparison.difference_tables import DifferenceTable, difference_tables, reading_help
from medssl.report.comparison.thesis_tables import by_dataset, results_grid, results_lead
from medssl.report.grids import Cell, Grid

_SPECIAL = re.compile(r"[\\`*|<>&]|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])")  # L_MSE needs no escape, _this_ does


def write_markdown(comparison: Comparison, path: str | Path) -> Path:
    """Writes the tables to `path`, whole or not at all, and returns it."""
    write_text_atomically(path, comparison_markdown(comparison))
    return Path(path)


def comparison_markdown(comparison: Comparison) -> str:
    """Results of every data set, then the differences to the baselines, with what must be said about both."""
    blocks = []
    for dataset, rows in by_dataset(comparison.rows).items():
        blocks += [f"### {escaped(dataset)}", grid_markdown(results_grid(rows))]
    blocks += _paragraphs([results_lead(comparison.rows), *comparison.notices])
    for table in difference_tables(comparison.differences):
        blocks += _difference_blocks(table)
    blocks += _paragraphs(reading_help(comparison.differences))
    return "\n\n".join(blocks) + "\n"


def grid_markdown(grid: Grid) -> str:
    """A grid as a table; text to the left, numbers to the right."""
    head = _line([column.title for column in grid.columns])
    rule = _line([":--" if column.is_text else "--:" for column in grid.columns])
    return "\n".join([head, rule, *(_line([_cell_text(cell) for cell in row.cells]) for row in grid.rows)])


def escaped(text: str) -> str:
    """The text on one line, with every character that Markdown or HTML would read as a sign of its own escaped."""
    return _SPECIAL.sub(lambda match: f"\\{match[0]}", " ".join(text.split()))


def _difference_blocks(table: DifferenceTable) -> list[str]:
    blocks = [f"### {escaped(table.title)}", grid_markdown(table.grid), escaped(table.lead)]
    return [*blocks, "\n".join(f"- {escaped(note)}" for note in table.notes)] if table.notes else blocks


def _paragraphs(texts: Sequence[str]) -> list[str]:
    return [escaped(text) for text in texts]


def _cell_text(cell: Cell) -> str:
    return escaped(" ".join(part for part in (cell.text, cell.small) if part))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
