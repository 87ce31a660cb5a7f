"""Does the review queue help? A reviewer who knows the labels tries."""

from pathlib import Path
from typing import Annotated

import typer

from medssl.cli.app import app, console
from medssl.cli.trust import Trust
from medssl.cli.values import numbers_of, pairs_of

simulate = typer.Typer(no_args_is_help=True, help=__doc__)
app.add_typer(simulate, name="simulate-review")


@simulate.command()
def inspect(
    runs: Annotated[list[Path], typer.Argument(help="Folders of finished runs; seeds are taken together.")],
    output: Annotated[Path, typer.Option(help="Folder for inspection.csv, .md and .png.")],
) -> None:
    """Errors found against slices and voxels inspected: in the order of uncertainty, by contour, random, oracle."""
    from medssl.review.simulation.inspection import inspect_runs, write_inspections

    for path in write_inspections(inspect_runs(runs), output):
        console.print(path)
    console.print((output / "inspection.md").read_text(), highlight=False, markup=False, soft_wrap=True)


@simulate.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def rounds(
    context: typer.Context,
    bundle: Annotated[Path, typer.Argument(help="A bundle, e.g. bundles/mcdropout_unet3d.")],
    output: Annotated[Path, typer.Option(help="Folder of the runs, and of rounds.csv, .md and .png.")],
    start: Annotated[int, typer.Option(help="Labelled cases before the first review.")] = 4,
    per_round: Annotated[int, typer.Option(help="Cases reviewed in a round.")] = 4,
    number: Annotated[int, typer.Option("--rounds", help="Rounds of review and training.")] = 3,
    seeds: Annotated[str, typer.Option(help="Seeds, e.g. 0,1,2.")] = "0",
    strategies: Annotated[str, typer.Option(help="Orders of the queue that are compared.")] = "uncertain,random,oracle",
    overlay: Annotated[list[str] | None, typer.Option(help="Overlay of train.json, e.g. bench.")] = None,
    jobs: Annotated[int, typer.Option(help="Processes at a time; they share the cores.")] = 1,
    trust: Trust = False,
) -> None:
    """Test Dice against corrected cases over rounds of training; further --key value pairs go to every training."""
    from medssl.review.simulation.rounds import Rounds, write_rounds
    from medssl.sweep import SweepRow

    row = SweepRow("review", bundle, tuple(overlay or ()))
    plan = Rounds(
        row,
        dict(pairs_of(context.args)),
        output,
        strategies.split(","),
        start,
        per_round,
        number,
        numbers_of(seeds),
        trust,
    )
    for path in write_rounds(plan.run(jobs), output):
        console.print(path)
    console.print((output / "rounds.md").read_text(), highlight=False, markup=False, soft_wrap=True)
