"""The list of all tables and figures: what each compares, what it needs, what it costs, how far it is."""

from collections.abc import Iterable
from pathlib import Path

from medssl.report.grids import Cell, Column, Grid, GridRow
from medssl.thesis.contents import Dataset, Entry, Thesis
from medssl.thesis.costs import Speed, gpu_hours
from medssl.thesis.plan import Plan, is_finished, is_there, make_plan

COLUMNS = [
    Column("No."),
    Column("What it compares", "text"),
    Column("Data", "text"),
    Column("Runs"),
    Column("GPU hours"),
    Column("State", "text"),
]


def list_grid(thesis: Thesis, data: Path, output: Path, speed: Speed) -> Grid:
    """A line for each table and figure, in the order of the thesis; runs are counted as if all data were there."""
    rows = []
    chapter_before = ""
    for entry in in_order(thesis.entries.values()):
        plan = make_plan(thesis, entry, data, without_data=True)
        runs = len(plan.all_run_folders(output))
        cells = [
            Cell(entry.number),
            Cell(entry.compares),
            Cell(_data_text(thesis, entry, data)),
            Cell(str(runs) if runs else "–"),
            Cell(_hours_text(gpu_hours(thesis, plan, speed)) if runs else "–"),
            Cell(state_text(plan, output)),
        ]
        rows.append(GridRow(cells, first=chapter_before not in ("", chapter_of(entry))))
        chapter_before = chapter_of(entry)
    return Grid(COLUMNS, rows)


def data_grid(thesis: Thesis, data: Path) -> Grid:
    """A line for each data set of the thesis: whether it is there, and where to get it."""
    used = {setting.dataset for entry in thesis.entries.values() for setting in entry.settings}
    rows = [_data_row(thesis.datasets[name], data) for name in thesis.datasets if name in used]
    return Grid([Column("Data set", "text"), Column("Folder", "text"), Column("Where to get it", "text")], rows)


def state_text(plan: Plan, output: Path) -> str:
    """'not started', '3 of 40 runs', 'done', or why there is nothing to run."""
    if plan.entry.kind == "configuration":
        return "checked by a test"
    if plan.entry.kind == "drawing":
        return "nothing to run"
    folders = plan.all_run_folders(output)
    if not folders:
        return "methods not there yet"
    waiting = len(plan.unregistered_rows())
    rest = f", {waiting} of {len(plan.entry.rows)} rows not there yet" if waiting else ""
    finished = sum(is_finished(folder) for folder in folders)
    if not finished:
        return "not started" + rest
    return ("done" if finished == len(folders) else f"{finished} of {len(folders)} runs") + rest


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """By chapter, tables before figures, each by its number."""
    return sorted(entries, key=_order)


def chapter_of(entry: Entry) -> str:
    """'3' of fig3.2, 'A' of A.1."""
    return entry.number.removeprefix("fig").partition(".")[0]


def _order(entry: Entry) -> tuple[str, bool, int]:
    return chapter_of(entry), entry.number.startswith("fig"), int(entry.number.partition(".")[2])


def _data_text(thesis: Thesis, entry: Entry, data: Path) -> str:
    names = dict.fromkeys(setting.dataset for setting in entry.settings)
    words = [f"{name} {'found' if is_there(thesis.datasets[name], data) else 'missing'}" for name in names]
    return ", ".join(words) or "–"


def _data_row(dataset: Dataset, data: Path) -> GridRow:
    state = "found" if is_there(dataset, data) else "missing"
    return GridRow([Cell(dataset.title), Cell(f"{data / dataset.folder}: {state}"), Cell(dataset.get)])


def _hours_text(hours: float) -> str:
    """Two digits: more would claim more than an estimate knows."""
    return f"{float(f'{hours:.2g}'):g}" if hours < 100 else f"{int(float(f'{hours:.2g}')):,}"
