"""Pages and tables of finished runs."""

import os
from pathlib import Path
from typing import Annotated

import typer

from medssl.cli.app import app, console, say
from medssl.core.errors import ConfigError


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(help="The folder of a run; give several to compare them.")],
    output: Annotated[
        Path | None,
        typer.Option(help="File for the page that compares runs; default: comparison.html in the runs' common folder."),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(help="Title of the method that the others are compared with, case by case; may be repeated."),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(help="Metric that --against compares in addition to Dice, e.g. hd95; may be repeated."),
    ] = None,
    markdown: Annotated[Path | None, typer.Option(help="File for the tables of several runs, as Markdown.")] = None,
) -> None:
    """Write the page of a run, or compare several.

    With --against, the differences are also written to <page>_differences.csv, next to the page.
    """
    runs_read = str(runs[0]) if len(runs) == 1 else f"{len(runs)} runs"
    say(f"Reading {runs_read}.")
    from medssl.report import (
        PAPER_CROP_NOTICE,
        compare,
        load_run,
        no_scores_text,
        print_comparison,
        summary_table,
        write_comparison,
        write_differences_csv,
        write_markdown,
        write_report,
    )

    if metric and not against:
        raise ConfigError("--metric: names what differences are taken of; give a method with --against, too.")
    if len(runs) == 1:
        if against or markdown:
            raise ConfigError(f"--against and --markdown compare runs, and {runs[0]} is only one. Give several.")
        run = load_run(runs[0])
        if run.paper_crop:
            console.print(PAPER_CROP_NOTICE)
        console.print(summary_table(run) if run.per_case else no_scores_text(run))
        console.print(f"report: {write_report(runs[0])}")
        return
    comparison = compare(runs, against or (), metric or ())
    print_comparison(comparison, console)
    page = output or _beside(runs)
    console.print(f"report: {write_comparison(comparison, page)}")
    if against:
        table = page.with_name(f"{page.stem}_differences.csv")
        console.print(f"differences: {write_differences_csv(comparison.differences, table)}")
    if markdown:
        console.print(f"markdown: {write_markdown(comparison, markdown)}")


def _beside(runs: list[Path]) -> Path:
    """comparison.html in the folder that holds all runs; in the current one if they have no folder in common."""
    folder = Path(os.path.commonpath([run.resolve().parent for run in runs]))
    return Path("comparison.html") if folder == Path(folder.anchor) else folder / "comparison.html"
