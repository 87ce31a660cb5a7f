"""The command that makes the thesis' tables and figures anew."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medssl.cli.app import KEYS, app, console, say
from medssl.cli.shared_options import Trust
from medssl.cli.values import keys_of, numbers_of
from medssl.core.errors import ConfigError
from medssl.core.progress import work

if TYPE_CHECKING:  # imports torch
    from medssl.thesis.measured import Measured


@app.command(context_settings=KEYS)
def reproduce(
    context: typer.Context,
    number: Annotated[
        str, typer.Argument(help="A table, e.g. 3.1, or a figure, e.g. fig3.2; without it, all are listed.")
    ] = "",
    data: Annotated[Path, typer.Option(help="Folder that holds the data sets, each in a folder of its name.")] = Path(
        "data"
    ),
    output_dir: Annotated[Path, typer.Option(help="Folder for the runs and the tables.")] = Path("runs/thesis"),
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the commands of the trainings, and run nothing.")
    ] = False,
    bench: Annotated[
        bool, typer.Option("--bench", help="Small networks and few steps, on what is in the folder of the data.")
    ] = False,
    overlay: Annotated[str, typer.Option(help="Overlay of the bundles for --bench.")] = "bench",
    seeds: Annotated[str, typer.Option(help="Random seeds, e.g. 0,1; default: as many as the thesis has.")] = "",
    jobs: Annotated[int, typer.Option(min=1, help="Number of trainings at a time; they share the cores.")] = 1,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Time a training step on this machine for the list's GPU hours.")
    ] = False,
    trust: Trust = False,
) -> None:
    """Make a table or a figure of the thesis anew, beside its printed numbers. Without a number, list all of them.

    Runs are shared between tables. After a stop, give the same command again: it continues. Further --key value pairs
    go to every training.
    """
    keys = keys_of(context.args)
    if not number:
        if dry_run or bench or keys:
            raise ConfigError("--dry-run, --bench and keys are of one table or figure. Give its number, e.g. 3.1.")
        _print_list(data, output_dir, estimate)
        return
    from medssl.thesis.contents import read_thesis

    entry = read_thesis().entry(number)
    chosen_seeds = numbers_of(seeds, "seeds", "0,1,2") if seeds else []
    say(f"{entry.label}: {entry.title}.")
    if entry.has_runs and not dry_run and not data.is_dir():
        raise ConfigError(f"--data {data}: no such folder. Give the folder that holds the data sets, such as kits19.")
    with work("loading libraries"):
        from medssl.thesis.plan import make_plan, require_something_to_run

        plan = make_plan(read_thesis(), entry, data, bench, chosen_seeds, without_data=dry_run and not bench)
        require_something_to_run(read_thesis(), plan)
        from medssl.thesis.run import commands, train_and_write

    overlays = [overlay] if bench else []
    keys = {"runs_dir": str(plan.folder(output_dir)), **keys}
    if dry_run:
        for command in commands(plan, output_dir, overlays, keys, trust):
            say(command)
        return
    measured, files = train_and_write(read_thesis(), plan, output_dir, overlays, keys, jobs, trust)
    if entry.kind == "table":
        _print_table(measured)
    for file in files:
        say(f"written: {file}")


def _print_list(data: Path, output_dir: Path, estimate: bool) -> None:
    """All tables and figures, then where the data sets are from."""
    say(f"Tables and figures of the thesis, data in {data}, runs in {output_dir}.")
    with work("loading libraries"):
        from medssl.report.comparison.terminal import grid_table
        from medssl.thesis.contents import read_thesis
        from medssl.thesis.costs import stored_speed, timed_speed
        from medssl.thesis.listing import data_grid, list_grid

    thesis = read_thesis()
    with work("timing a step" if estimate else "looking for runs"):
        speed = timed_speed(thesis) if estimate else stored_speed(thesis)
        listed = list_grid(thesis, data, output_dir, speed)
    console.print(grid_table(listed, ""))
    console.print(grid_table(data_grid(thesis, data), ""))
    say(f"GPU hours: an estimate of the training alone, of what is registered. {speed.origin}")
    say("A table: medssl reproduce 3.1 --data DIR --output_dir RUNS. Small, on what is there: add --bench.")


def _print_table(measured: "Measured") -> None:
    from medssl.report.comparison.terminal import grid_table
    from medssl.thesis.contents import read_thesis
    from medssl.thesis.form import lead, notes, result_grids

    for title, grid in result_grids(read_thesis(), measured):
        console.print(grid_table(grid, title))
    for text in [lead(measured), *notes(read_thesis(), measured)]:
        say(text)
