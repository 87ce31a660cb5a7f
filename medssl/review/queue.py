"""The review queue: measured cases in the order of their need, with the time each takes and what fits into a budget."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from medssl.core.errors import DataError
from medssl.core.progress import tracked
from medssl.report.scrub import without_paths
from medssl.review.effort import Choice, Effort, choose
from medssl.review.measuring import Measured, measure
from medssl.review.sources import Source
from medssl.review.strategies import check_strategy, need_of, order


@dataclass(frozen=True)
class Entry:
    """A case in its place. need: as of need_of. choice: None without a budget."""

    rank: int
    measured: Measured
    need: float
    seconds: float
    choice: Choice | None

    @property
    def note(self) -> str:
        """What else is to be said of the case; mostly nothing."""
        notes = []
        if self.choice and not self.choice.chosen:
            left = time_text(self.choice.left_seconds)
            notes.append(f"Passed over: takes {time_text(self.seconds)}, {left} were left")
        if self.measured.case.image is None:
            notes.append("Scan not found: only its prediction is shown")
        return ". ".join(notes)


@dataclass(frozen=True)
class Queue:
    """Cases that failed, which come first and need a human before they can be reviewed, then the ranked ones.

    failures: case -> reason, without paths of the machine. structures: the names of all of them.
    """

    name: str
    strategy: str
    structure: str | None
    seed: int
    effort: Effort
    budget_seconds: float | None
    failures: Mapping[str, str]
    entries: Sequence[Entry]
    structures: Sequence[str]
    window: Sequence[float] | None = None

    @property
    def chosen(self) -> list[Entry]:
        """The entries within the budget; all of them without one."""
        return [entry for entry in self.entries if entry.choice is None or entry.choice.chosen]


def build_queue(
    source: Source,
    strategy: str = "uncertain",
    structure: str | None = None,
    seed: int = 0,
    effort: Effort | None = None,
    budget_seconds: float | None = None,
) -> Queue:
    """Measure the cases one after the other and put them in order; a case whose maps are no good joins the failures.

    Raises ConfigError for a strategy or structure there is not.
    """
    check_strategy(strategy, structure)
    effort = effort or Effort()
    failures = dict(source.failures)
    measured: dict[str, Measured] = {}
    needs: dict[str, float] = {}
    for case in tracked(source.cases, "looking at predictions", "cases"):
        try:
            case_measures = measure(case, source.structures, effort)
            needs[case.id] = need_of(case_measures.record, strategy, structure, seed)
        except DataError as error:
            failures[case.id] = str(error)
        else:
            measured[case.id] = case_measures
    ids = order([case_measures.record for case_measures in measured.values()], strategy, seed, structure)
    seconds = [effort.seconds(measured[case].work) for case in ids]
    choices = choose(seconds, budget_seconds) if budget_seconds is not None else [None] * len(ids)
    entries = [
        Entry(len(failures) + place, measured[case], needs[case], seconds[place - 1], choices[place - 1])
        for place, case in enumerate(ids, start=1)
    ]
    names = list((source.structures or {}).values()) or sorted({n for m in measured.values() for n in _named(m)})
    reasons = {case: str(without_paths(failures[case], Path())) for case in sorted(failures)}
    return Queue(source.name, strategy, structure, seed, effort, budget_seconds, reasons, entries, names, source.window)


def time_text(seconds: float) -> str:
    """'2.5 min', from an hour on '2 h 05 min'."""
    minutes = round(seconds / 60)
    return f"{seconds / 60:.1f} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def _named(measured: Measured) -> list[str]:
    return list(measured.record["structures"])
