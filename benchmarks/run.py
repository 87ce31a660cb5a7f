"""Runs every benchmark beside this file, or those named, and prints one table: `make bench`.

    python benchmarks/run.py [--full] [name ...]

A benchmark is a module with `measure()`, which yields (claim, peer, our CPU seconds, the peer's) and, after these,
what else a `Row` has; or with `notes()`, which yields lines that are printed below the table; or with both. Both sides
of a row run in the same process, one after the other. Those that take minutes run only with --full, if the function
has an argument of that name. A run of all writes README.md beside this file.
"""

import argparse
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from machine import describe_machine
from table import Row, markdown_table

HERE = Path(__file__).parent

PARTS = {"run", "table", "timing", "machine", "peak"}
HEADER = """# What `make bench` printed last

Ratios of CPU seconds, measured side by side in one process with one thread. "At most" is the ratio that no program can
exceed, and why; "share reached" is how much of that speed we have.
"""


def benchmarks() -> list[str]:
    """The names of all benchmarks."""
    return [path.stem for path in sorted(HERE.glob("*.py")) if path.stem not in PARTS]


def results(module: ModuleType, function: str, full: bool) -> Iterator[Any]:
    """What `measure` or `notes` of a benchmark yields; nothing if it has none."""
    call: Callable[..., Iterator[Any]] | None = getattr(module, function, None)
    if call is not None:
        yield from call(full=full) if "full" in inspect.signature(call).parameters else call()


def report(names: list[str], full: bool) -> str:
    """The machine, the table and the notes of the named benchmarks, as Markdown."""
    machine, rows, notes = describe_machine(), [], []
    for name in names:
        print(f"running {name} ...", file=sys.stderr, flush=True)
        module = importlib.import_module(name)
        rows += [Row(*values) for values in results(module, "measure", full)]
        notes += list(results(module, "notes", full))
    return "\n".join([HEADER, machine, "", markdown_table(rows), "", *notes])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(benchmarks()))
    parser.add_argument("--full", action="store_true", help="also what takes minutes")
    chosen = parser.parse_args()
    if unknown := set(chosen.names) - set(benchmarks()):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}: there are {', '.join(benchmarks())}")
    torch.set_num_threads(1)
    text = report(chosen.names or benchmarks(), chosen.full)
    if not chosen.names:
        (HERE / "README.md").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
