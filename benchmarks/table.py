"""The rows of the benchmarks' table and how it is written."""

from collections.abc import Iterable
from typing import NamedTuple

TITLES = ("claim", "peer", "ours (CPU s)", "peer (CPU s)", "ratio", "asked for", "met", "at most", "share reached")


class Row(NamedTuple):
    """What was compared with what, in CPU seconds of each side.

    target: the ratio that was asked for. limit_s: seconds that ours cannot go below, `reason` says why.
    """

    claim: str
    peer: str
    ours_s: float
    peer_s: float
    target: float | None = None
    limit_s: float | None = None
    reason: str = ""

    @property
    def ratio(self) -> float:
        return self.peer_s / self.ours_s

    @property
    def share_of_limit(self) -> float | None:
        """How much of what is possible is reached, 1 for all of it."""
        return None if self.limit_s is None else self.limit_s / self.ours_s

    def cells(self) -> list[str]:
        target = (
            ("", "") if self.target is None else (_times(self.target), "yes" if self.ratio >= self.target else "no")
        )
        limit = ("", "")
        if self.limit_s is not None and self.share_of_limit is not None:
            limit = (f"{_times(self.peer_s / self.limit_s)} ({self.reason})", f"{self.share_of_limit:.0%}")
        return [self.claim, self.peer, f"{self.ours_s:.3g}", f"{self.peer_s:.3g}", _times(self.ratio), *target, *limit]


def markdown_table(rows: Iterable[Row]) -> str:
    """All rows as one Markdown table."""
    lines = [TITLES, ("---",) * len(TITLES), *(row.cells() for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _times(ratio: float) -> str:
    return f"{ratio:.0f}x" if ratio >= 100 else f"{ratio:.3g}x"
