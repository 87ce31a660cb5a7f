"""The table of a benchmark: on the terminal and as Markdown."""

import math
from pathlib import Path

from rich.console import Console
from rich.table import Table

from medssl.benchmark.verdict import BASELINE, Benchmark, MethodResult, sentence
from medssl.core.csv_files import write_rows
from medssl.core.files import write_text_atomically
from medssl.metrics.catalogue import DICE
from medssl.report.comparison.difference_tables import interval_text, signed
from medssl.report.comparison.markdown import comparison_markdown, escaped

HEAD = ("Labels", "Method", "Dice", "Gain", "95 %", "p (Holm)", "Median gain", "Failed", "Gap closed", "Compute")
SMALL_GAP = 4.0  # points of Dice; below it a table can show little


def print_benchmark(benchmark: Benchmark, console: Console) -> None:
    """The table, what it cannot show, and the sentence."""
    table = Table(title="Dice in points; gain over supervised training of the same compute")
    for title in HEAD:
        table.add_column(title, justify="left" if title == "Method" else "right", no_wrap=title != "Method")
    for result in benchmark.results:
        table.add_row(*_cells(result))
    console.print(table)
    for text in [*remarks(benchmark), sentence(benchmark)]:
        console.print(text, highlight=False)


def write_benchmark(benchmark: Benchmark, folder: Path, command: str) -> Path:
    """benchmark.md and benchmark.csv in `folder`; the path of the first."""
    lines = [f"| {' | '.join(HEAD)} |", f"|{'|'.join('--:' if title != 'Method' else ':--' for title in HEAD)}|"]
    lines += [f"| {' | '.join(escaped(cell) for cell in _cells(result))} |" for result in benchmark.results]
    notes = "\n\n".join(escaped(text) for text in remarks(benchmark))
    parts = [f"**{escaped(sentence(benchmark))}**", "\n".join(lines), notes, f"```\n{command}\n```"]
    parts += ["## All measures", comparison_markdown(benchmark.comparison)]
    page = folder / "benchmark.md"
    write_text_atomically(page, "\n\n".join(part for part in parts if part) + "\n")
    columns = [name for name in vars(benchmark.results[0]) if name != "interval"]
    rows = [
        {name: vars(result)[name] for name in columns} | {"low": result.interval.low, "high": result.interval.high}
        for result in benchmark.results
    ]
    write_rows(folder / "benchmark.csv", (*columns, "low", "high"), rows)
    return page


def remarks(benchmark: Benchmark) -> list[str]:
    """What a reader must know besides the numbers."""
    seeds = max(result.seeds for result in benchmark.results)
    cases = max(result.cases for result in benchmark.results)
    texts = [
        f"{cases} test scans, {seeds} seed{'s' if seeds > 1 else ''}. Gain: paired by scan and seed. 95 %: scans "
        f"{'and seeds ' if seeds > 1 else ''}drawn anew. Failed: scans with less than half of the baseline's median "
        "Dice, over all seeds. Gap closed: share of what labels of all training scans would bring. Compute: patches "
        "forward and backward."
    ]
    for labelled in sorted({result.labelled for result in benchmark.results}):
        gap = next(result.gap for result in benchmark.results if result.labelled == labelled)
        if math.isfinite(gap) and gap < SMALL_GAP:
            texts.append(f"With {labelled} labels the gap to all labels is only {gap:.1f} points: little can be shown.")
    return texts


def _cells(result: MethodResult) -> list[str]:
    unit = DICE.unit
    is_baseline = result.method == BASELINE
    closed = "" if not math.isfinite(result.gap_closed) else f"{result.gap_closed:.0%}"
    return [
        str(result.labelled),
        result.method + (" *" if result.is_better else ""),
        f"{result.dice:.1f}",
        "" if is_baseline else signed(result.difference, unit),
        "" if is_baseline else interval_text(result.interval, unit),
        "" if is_baseline or not math.isfinite(result.p) else f"{result.p:.4f}",
        "" if is_baseline else signed(result.median, unit),
        str(result.failed),
        f"gap {signed(result.gap, unit)}" if is_baseline and math.isfinite(result.gap) else closed,
        "" if not math.isfinite(result.passes) else f"{result.passes:.0f}",
    ]
