"""A made table on disk: Markdown, a page, its numbers and the values of every case as CSV."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from medssl.bundle.provenance import source_commit
from medssl.core.csv_files import write_rows
from medssl.core.files import write_text_atomically
from medssl.report.comparison.difference_tables import difference_tables, reading_help
from medssl.report.comparison.differences import write_differences_csv
from medssl.report.comparison.markdown import escaped, grid_markdown
from medssl.report.figures.pictures import Picture
from medssl.report.templating import render
from medssl.thesis.contents import Thesis
from medssl.thesis.form import lead, notes, result_grids
from medssl.thesis.measured import Measured

TEMPLATE = "medssl.thesis/entry.html.j2"
NUMBER_COLUMNS = (
    "table", "row", "method", "dataset", "labelled", "run_on", "run_labelled", "metric", "mean", "sd", "seeds",
    "thesis_mean", "thesis_sd", "impossible",
)  # fmt: skip
CASE_COLUMNS = ("row", "setting", "run", "seed", "case", "structure", "metric", "value")


def write_table(thesis: Thesis, measured: Measured, folder: Path) -> list[Path]:
    """Write NUMBER.md, .html, .csv, _cases.csv and, where rows can be compared, _differences.csv; the files."""
    number = measured.plan.entry.number
    folder.mkdir(parents=True, exist_ok=True)
    write_text_atomically(folder / f"{number}.md", table_markdown(thesis, measured))
    write_text_atomically(folder / f"{number}.html", table_html(thesis, measured))
    write_rows(folder / f"{number}.csv", NUMBER_COLUMNS, number_rows(measured), line_end="\n")
    write_rows(folder / f"{number}_cases.csv", CASE_COLUMNS, case_rows(measured), line_end="\n")
    files = [folder / f"{number}{end}" for end in (".md", ".html", ".csv", "_cases.csv")]
    if measured.differences:
        files.append(write_differences_csv(measured.differences, folder / f"{number}_differences.csv"))
    return files


def table_markdown(thesis: Thesis, measured: Measured) -> str:
    """The table, what must be said about it, the differences to a row, and what is not as in the thesis."""
    entry = measured.plan.entry
    blocks = [f"## {escaped(f'{entry.label}: {entry.title}')}"]
    for title, grid in result_grids(thesis, measured):
        blocks += [f"### {escaped(title)}", grid_markdown(grid)]
    blocks += [escaped(lead(measured)), _bullets(notes(thesis, measured))]
    for table in difference_tables(measured.differences):
        blocks += [f"### {escaped(table.title)}", grid_markdown(table.grid), escaped(table.lead), _bullets(table.notes)]
    blocks += [escaped(text) for text in reading_help(measured.differences)]
    blocks += [
        "### What differs from the thesis' protocol",
        _bullets(entry.differs),
        f"Made with medssl {source_commit()}.",
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def table_html(thesis: Thesis, measured: Measured, figures: Sequence[tuple[str, Picture]] = ()) -> str:
    """The same as a page."""
    entry = measured.plan.entry
    return render(
        TEMPLATE,
        title=f"{entry.label}: {entry.title}",
        subtitle=f"{len(measured.runs)} runs · medssl {source_commit()}",
        lead=lead(measured) if entry.kind == "table" else "",
        results=result_grids(thesis, measured) if entry.kind == "table" else [],
        figures=figures,
        notes=notes(thesis, measured),
        differences=difference_tables(measured.differences),
        reading_help=reading_help(measured.differences),
        differs=entry.differs,
    )


def number_rows(measured: Measured) -> list[dict[str, Any]]:
    """A line for each number of the table, ours and the thesis'; ours in percent where the thesis has percent."""
    entry, rows = measured.plan.entry, []
    scale = 100.0 if entry.percent else 1.0
    for cell in measured.cells:
        planned, setting, place = cell.planned, cell.planned.setting, cell.planned.place
        for metric, number in zip(entry.metrics, planned.row.numbers[setting.name], strict=True):
            stat = cell.stats.get(metric)
            rows.append(
                {
                    "table": entry.number,
                    "row": planned.row.name,
                    "method": planned.row.method or "",
                    "dataset": setting.dataset,
                    "labelled": setting.labelled,
                    "run_on": place.dataset.name if place else "",
                    "run_labelled": place.labelled if place else "",
                    "metric": metric,
                    "mean": _number(scale * stat.mean) if stat else "",
                    "sd": _number(scale * stat.sd) if stat else "",
                    "seeds": len(cell.runs),
                    "thesis_mean": number.mean,
                    "thesis_sd": _number(number.sd),
                    "impossible": number.why_impossible,
                }
            )
    return rows


def case_rows(measured: Measured) -> list[dict[str, Any]]:
    """A line for each value of each case in each run of the table."""
    rows = []
    for cell in measured.cells:
        for run in cell.runs:
            where = {
                "row": cell.planned.row.name,
                "setting": cell.planned.setting.name,
                "run": run.folder.name,
                "seed": run.facts["seed"],
            }
            for case in run.per_case:
                named = {**where, "case": case["case"], "structure": case["structure"]}
                values = {metric: case.get(metric, math.nan) for metric in measured.plan.entry.metrics}
                rows += [{**named, "metric": metric, "value": _number(value)} for metric, value in values.items()]
    return rows


def _bullets(texts: Sequence[str]) -> str:
    return "\n".join(f"- {escaped(text)}" for text in texts)


def _number(value: float) -> float | str:
    """The value, blank where there is none."""
    return value if math.isfinite(value) else ""
