"""Pages and tables of finished runs."""

import os
from pathlib import Path
from typing import Annotated

import typer

from medssl.cli.app import app, console, say
from medssl.core.errors import ConfigError
from medssl.core.progress import work


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(help="The folder of a run; give several to compare them.")],
    output_dir: Annotated[
        Path | None,
        typer.Option(help="Folder for comparison.html, or the page itself; default: the folder that holds the runs."),
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
    if metric and not against:
        raise ConfigError("--metric: names what differences are taken of; give a method with --against, too.")
    if len(runs) == 1 and (against or markdown):
        raise ConfigError(f"--against and --markdown compare runs, and {runs[0]} is only one. Give several.")
    say(f"Reading {runs[0] if len(runs) == 1 else f'{len(runs)} runs'}.")
    with work("loading libraries"):
        import medssl.report  # noqa: F401
    if len(runs) == 1:
        _report_of(runs[0])
    else:
        _comparison_of(runs, _page(output_dir, runs), against or [], metric or [], markdown)


def _report_of(folder: Path) -> None:
    from medssl.report import (
        PAPER_CROP_NOTICE,
        health_warnings,
        load_run,
        no_scores_text,
        summary_table,
        write_report,
    )

    run = load_run(folder)
    if run.paper_crop:
        say(PAPER_CROP_NOTICE)
    for warning in health_warnings(run):
        say(f"warning: {warning}")
    console.print(summary_table(run) if run.per_case else no_scores_text(run))
    with work("drawing the report"):
        page = write_report(folder)
    say(f"report: {page}")


def _comparison_of(runs: list[Path], page: Path, against: list[str], metrics: list[str], markdown: Path | None) -> None:
    from medssl.report import compare, print_comparison, write_comparison, write_differences_csv, write_markdown

    with work("comparing the runs"):
        comparison = compare(runs, against, metrics)
    print_comparison(comparison, console)
    with work("drawing the comparison"):
        write_comparison(comparison, page)
    say(f"report: {page}")
    if against:
        table = page.with_name(f"{page.stem}_differences.csv")
        say(f"differences: {write_differences_csv(comparison.differences, table)}")
    if markdown:
        say(f"markdown: {write_markdown(comparison, markdown)}")


def _page(asked: Path | None, runs: list[Path]) -> Path:
    """The page that was asked for: a file, or comparison.html in a folder; else in the folder that holds all runs."""
    if asked is not None:
        return asked if asked.suffix == ".html" else asked / "comparison.html"
    folder = Path(os.path.commonpath([run.resolve().parent for run in runs]))
    return Path("comparison.html") if folder == Path(folder.anchor) else folder / "comparison.html"
