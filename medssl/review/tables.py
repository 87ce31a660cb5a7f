"""The queue in tables, for the page and for the terminal, and the sentences that explain it."""

import math
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from medssl.metrics.catalogue import BITS, MILLILITRES, Metric
from medssl.report.comparison.terminal import grid_table
from medssl.report.grids import Cell, Column, Grid, GridRow
from medssl.review.effort import Choice, Effort
from medssl.review.queue import Entry, Queue, time_text
from medssl.uncertainty.ranking import REACH_MM

TOP = 10
STRUCTURE_MEASURES = (  # of the record of a case
    Metric("surroundings_entropy_bits", "Entropy around it", unit=BITS),
    Metric("volume_ml", "Volume", unit=MILLILITRES, decimals=2),
)
NAMES_WIDTH, MEASURE_WIDTH = 84, 11


def print_queue(queue: Queue, console: Console, top: int = TOP) -> None:
    """Print failures, the first `top` cases with as many numbers as there is room for, and what fits into a budget."""
    if queue.failures:
        console.print(grid_table(failures_grid(queue), "Failed: these need a human first"))
    if queue.entries:
        room = max(0, console.width - NAMES_WIDTH) // max(1, MEASURE_WIDTH * len(queue.structures))
        grid = every_case_grid(queue, queue.entries[:top], STRUCTURE_MEASURES[:room])
        console.print(grid_table(grid, f"Review queue: {queue.name}", order_text(queue)))
    more = len(queue.entries) - top
    if more > 0:
        console.print(Text(f"and {more} more"))
    console.print(Text(budget_text(queue)))


def failures_grid(queue: Queue) -> Grid:
    """Rank, case and reason of every case without a usable prediction."""
    rows = [
        GridRow([Cell(str(rank)), Cell(case, strong=True), Cell(reason)])
        for rank, (case, reason) in enumerate(queue.failures.items(), start=1)
    ]
    return Grid([Column("Rank"), Column("Case", "text"), Column("What happened", "text wide")], rows)


def every_case_grid(queue: Queue, entries: Sequence[Entry], measures: Sequence[Metric] = STRUCTURE_MEASURES) -> Grid:
    """One row per entry, with these measures of every structure."""
    highest = max((entry.need for entry in queue.entries), default=0.0)
    per_structure = [Column(f"{name} ({measure.unit.name})") for measure in measures for name in queue.structures]
    columns = [Column("Rank"), Column("Case", "text"), Column(need_title(queue)), *per_structure]
    columns += [Column("Look at", "text"), Column("Minutes")]
    columns += [Column("Chosen", "text")] if queue.budget_seconds is not None else []
    return Grid(columns, [GridRow(_cells(entry, queue, highest, measures)) for entry in entries])


def need_title(queue: Queue) -> str:
    """What the order follows."""
    if queue.strategy == "random":
        return "Drawn"
    return "Need (bits)" if queue.structure is None else f"Need: {queue.structure} (bits)"


def order_text(queue: Queue) -> str:
    """How the cases are ordered, in a sentence."""
    if queue.strategy == "random":
        return f"Random order, drawn with seed {queue.seed}."
    if queue.structure is not None:
        return f"Most need first: mean entropy within {REACH_MM:g} mm of the predicted {queue.structure}."
    if queue.strategy == "structure":
        return f"Most need first: mean entropy within {REACH_MM:g} mm of the structure that is least certain."
    return f"Most need first: mean entropy within {REACH_MM:g} mm of the predicted structures, averaged over them."


def effort_text(effort: Effort) -> str:
    """How the minutes are estimated, in a sentence."""
    return (
        f"Estimated time: {effort.open_seconds:g} s to open a case, {effort.slice_seconds:g} s for each slice with at "
        f"least {effort.slice_mm2:g} mm² above {effort.uncertain_bits:g} bits within {REACH_MM:g} mm of a predicted "
        f"structure, and {effort.area_seconds:g} s for each square centimetre of that."
    )


def budget_text(queue: Queue) -> str:
    """How many cases fit into how much time."""
    count, taken = len(queue.chosen), time_text(sum(entry.seconds for entry in queue.chosen))
    if queue.budget_seconds is None:
        return f"{count} cases, {taken} of review (estimated)."
    total = len(queue.entries)
    return f"{count} of {total} cases chosen, {taken} of {time_text(queue.budget_seconds)} (estimated)."


def percent_of(need: float, highest: float) -> int:
    """Length of a bar."""
    return round(100 * need / highest) if 0 < highest < math.inf else 0


def _cells(entry: Entry, queue: Queue, highest: float, measures: Sequence[Metric]) -> list[Cell]:
    measured, structures = entry.measured, entry.measured.record["structures"]
    numbers = [
        Cell(measure.text(structures[name][measure.name]) if name in structures else "")
        for measure in measures
        for name in queue.structures
    ]
    bar = None if queue.strategy == "random" else percent_of(entry.need, highest)
    return [
        Cell(str(entry.rank)),
        Cell(measured.case.id, "scan not found" if measured.case.image is None else ""),
        Cell(f"{entry.need:.3f}", bar=bar),
        *numbers,
        Cell(f"{measured.plane} {', '.join(map(str, measured.slices[:3]))}" if measured.slices else ""),
        Cell(f"{entry.seconds / 60:.1f}"),
        *([] if entry.choice is None else [_choice_cell(entry.choice)]),
    ]


def _choice_cell(choice: Choice) -> Cell:
    return Cell("yes") if choice.chosen else Cell("no", f"{time_text(choice.left_seconds)} left")
