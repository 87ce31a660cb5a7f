"""review.html: the queue as one page that needs no network and no script; boxes to tick switch its layers by CSS."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from medssl.core.errors import DataError
from medssl.core.files import write_text_atomically
from medssl.core.progress import tracked
from medssl.report.scrub import without_paths
from medssl.report.templating import render
from medssl.review.queue import Entry, Queue, time_text
from medssl.review.tables import effort_text, every_case_grid, failures_grid, order_text, percent_of
from medssl.review.thumbnails import PROPORTION, Layers, gradient, legend, slice_layers

TEMPLATE = "medssl.review/review_page.html.j2"
PICTURED_CASES, PICTURED_SLICES = 24, 3


def write_page(queue: Queue, path: str | Path, cases: int = PICTURED_CASES, slices: int = PICTURED_SLICES) -> Path:
    """Write the page, whole or not at all, and return its path.

    The first `cases` cases are shown with pictures of `slices` slices each, which are read one case at a time; the rest
    are rows of a table.
    """
    content = page_content(queue, cases, slices)
    write_text_atomically(path, render(TEMPLATE, **content))
    return Path(path)


def page_content(queue: Queue, cases: int, slices: int) -> dict[str, Any]:
    """What the template asks for."""
    names = {number: name for entry in queue.entries for number, name in entry.measured.names.items()}
    return {
        "title": f"Review queue: {queue.name}",
        "order": order_text(queue),
        "effort": effort_text(queue.effort),
        "notices": _notices(queue),
        "tiles": _tiles(queue),
        "failures": failures_grid(queue) if queue.failures else None,
        "cards": [_card(entry, queue, slices) for entry in tracked(queue.entries[:cases], "pictures", "cases")],
        "rest": max(0, len(queue.entries) - cases),
        "slices": slices,
        "legend": legend(names),
        "gradient": gradient(),
        "most_bits": f"{math.log2(_num_classes(queue)):.2f}",
        "every_case": every_case_grid(queue, queue.entries) if queue.entries else None,
    }


def _tiles(queue: Queue) -> list[dict[str, str]]:
    total = len(queue.entries) + len(queue.failures)
    for_all = sum(entry.seconds for entry in queue.entries)
    tiles = [{"title": "Cases", "text": str(total), "small": ""}]
    if queue.failures:
        tiles.append({"title": "Failed", "text": str(len(queue.failures)), "small": "need a human first"})
    if queue.budget_seconds is None:
        return [*tiles, {"title": "Time for all", "text": time_text(for_all), "small": "estimated"}]
    taken = sum(entry.seconds for entry in queue.chosen)
    return [
        *tiles,
        {"title": "Chosen", "text": str(len(queue.chosen)), "small": f"of {len(queue.entries)}"},
        {"title": "Time for them", "text": time_text(taken), "small": f"of {time_text(queue.budget_seconds)}"},
        {"title": "Time for all", "text": time_text(for_all), "small": "estimated"},
    ]


def _notices(queue: Queue) -> list[str]:
    notices = []
    if queue.failures:
        count = len(queue.failures)
        notices.append(f"{count} {'case has' if count == 1 else 'cases have'} no usable prediction: look there first.")
    if queue.budget_seconds is not None and queue.entries and not queue.chosen:
        shortest = min(entry.seconds for entry in queue.entries)
        notices.append(f"No case fits into the budget: the shortest takes {time_text(shortest)}.")
    return notices


def _card(entry: Entry, queue: Queue, slices: int) -> dict[str, Any]:
    measured = entry.measured
    highest = max((other.need for other in queue.entries), default=0.0)
    card: dict[str, Any] = {
        "rank": entry.rank,
        "case": measured.case.id,
        "need": f"{measured.record['score'] if queue.strategy == 'random' else entry.need:.3f}",
        "bar": None if queue.strategy == "random" else percent_of(entry.need, highest),
        "minutes": time_text(entry.seconds),
        "to_check": measured.work.slices,
        "area": f"{measured.work.area_cm2:.0f}",
        "chosen": None if entry.choice is None else entry.choice.chosen,
        "note": entry.note,
        "structures": [
            (name, f"{measures['surroundings_entropy_bits']:.3f}", f"{measures['volume_ml']:.2f}")
            for name, measures in measured.record["structures"].items()
        ],
        "where": f"{measured.plane} slices {', '.join(map(str, measured.slices))}" if measured.slices else "",
        "pictures": [],
        "proportion": 1.0,
        "problem": "",
    }
    try:
        card["pictures"] = pictures = slice_layers(measured, slices, _num_classes(queue), queue.window)
        card["proportion"] = _proportion(pictures)
    except DataError as error:  # the scan's header was read, its voxels may still be damaged
        card["problem"] = f"No pictures: {without_paths(str(error), Path())}"
    return card


def _proportion(pictures: Sequence[Layers]) -> float:
    """Width over height of a case's pictures; a region that is higher than wide gets bars at its sides."""
    return round(max(1.0, min(1 / PROPORTION, *(p.width_mm / p.height_mm for p in pictures))), 3) if pictures else 1.0


def _num_classes(queue: Queue) -> int:
    return max(2, len(queue.structures) + 1)
