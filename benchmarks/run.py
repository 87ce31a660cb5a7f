"""Runs every benchmark beside this file, or those named, and prints one table: claim, peer, ratio. `make bench`.

A benchmark is a module whose `measure()` yields (claim, peer, our CPU seconds, the peer's); both sides run in the same
process, one after the other.
"""

import importlib.util
import os
import platform
import sys
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent


class Row(NamedTuple):
    """What was compared, with what, how many times cheaper ours is in CPU seconds."""

    claim: str
    peer: str
    ours_s: float
    peer_s: float

    @property
    def ratio(self) -> float:
        return self.peer_s / self.ours_s


def main(names: list[str]) -> None:
    paths = {path.stem: path for path in sorted(HERE.glob("*.py")) if path.name != Path(__file__).name}
    if unknown := set(names) - set(paths):
        raise SystemExit(f"no benchmark {', '.join(sorted(unknown))}: there are {', '.join(paths)}")
    table = Table(title=f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    for title in ("claim", "peer", "ours (CPU s)", "peer (CPU s)", "ratio"):
        table.add_column(title)
    for name in names or paths:
        spec = importlib.util.spec_from_file_location(name, paths[name])
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for claim, peer, ours_s, peer_s in module.measure():
            row = Row(claim, peer, ours_s, peer_s)
            table.add_row(claim, peer, f"{ours_s:.3g}", f"{peer_s:.3g}", f"{row.ratio:.1f}x")
    Console().print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
