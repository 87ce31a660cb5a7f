"""worklist.csv: the queue as a table for any other program."""

from pathlib import Path
from typing import Any

from medssl.core.csv_files import write_rows
from medssl.review.queue import Entry, Queue

FIRST = ("rank", "case", "need", "score_bits")
LAST = ("plane", "uncertain_slices", "slices_to_check", "uncertain_cm2", "minutes", "chosen", "note")


def write_worklist(queue: Queue, path: str | Path) -> Path:
    """Write one row per case, failures first, all of them or none, and return the path.

    need: what the order follows (bits; for a random order the number drawn). uncertain_slices: places along the scan's
    axis that `plane` is across, from 0, the most uncertain one first. chosen: yes or no, blank without a budget.
    """
    own = [column for name in queue.structures for column in (f"{name}_entropy_bits", f"{name}_ml")]
    failed: list[dict[str, Any]] = [
        {"rank": rank, "case": case, "note": f"failed: {reason}"}
        for rank, (case, reason) in enumerate(queue.failures.items(), start=1)
    ]
    write_rows(Path(path), (*FIRST, *own, *LAST), [*failed, *map(_row, queue.entries)])
    return Path(path)


def _row(entry: Entry) -> dict[str, Any]:
    measured = entry.measured
    structures: dict[str, Any] = {}
    for name, measures in measured.record["structures"].items():
        structures[f"{name}_entropy_bits"] = measures["surroundings_entropy_bits"]
        structures[f"{name}_ml"] = measures["volume_ml"]
    return {
        "rank": entry.rank,
        "case": measured.case.id,
        "need": entry.need,
        "score_bits": measured.record["score"],
        **structures,
        "plane": measured.plane,
        "uncertain_slices": " ".join(map(str, measured.slices)),
        "slices_to_check": measured.work.slices,
        "uncertain_cm2": f"{measured.work.area_cm2:.2f}",
        "minutes": f"{entry.seconds / 60:.2f}",
        "chosen": "" if entry.choice is None else ("yes" if entry.choice.chosen else "no"),
        "note": entry.note,
    }
