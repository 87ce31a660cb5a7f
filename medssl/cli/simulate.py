"""Measure whether the review queue helps."""

from pathlib import Path
from typing import Annotated

import typer

from medssl.cli.app import KEYS, Commands, app, console
from medssl.cli.trust import Trust
from medssl.cli.values import keys_of, numbers_of

simulate = Commands(help=__doc__)
app.add_typer(simulate, name="simulate-review")


@simulate.command()
def inspect(
    runs: Annotated[list[Path], typer.Argument(help="Folders of finished runs; seeds are taken together.")],
    output_dir: Annotated[Path, typer.Option(help="Folder for inspection.csv, .md and .png.")],
) -> None:
    """Count the errors that a reviewer finds.

    They are counted against slices and voxels inspected, in the order of uncertainty, by contour, at random, and as
    one who knows the errors would.
    """
    from medssl.review.simulation.inspection import inspect_runs, write_inspections

    for path in write_inspections(inspect_runs(runs), output_dir):
        console.print(path)
    console.print((output_dir / "inspection.md").read_text(), highlight=False, markup=False, soft_wrap=True)


@simulate.command(context_settings=KEYS)
def rounds(
    context: typer.Context,
    bundle: Annotated[Path, typer.Argument(help="A bundle, e.g. bundles/mcdropout_unet3d.")],
    output_dir: Annotated[Path, typer.Option(help="Folder of the runs, and of rounds.csv, .md and .png.")],
    start: Annotated[int, typer.Option(min=1, help="Labelled cases before the first review.")] = 4,
    per_round: Annotated[int, typer.Option(min=1, help="Cases reviewed in a round.")] = 4,
    number: Annotated[int, typer.Option("--rounds", min=1, help="Rounds of review and training.")] = 3,
    seeds: Annotated[str, typer.Option(help="Seeds, e.g. 0,1,2.")] = "0",
    strategies: Annotated[str, typer.Option(help="Orders of the queue that are compared.")] = "uncertain,random,oracle",
    overlay: Annotated[list[str] | None, typer.Option(help="Overlay of train.json, e.g. bench.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes at a time; they share the cores.")] = 1,
    trust: Trust = False,
) -> None:
    """Train, review, correct, and train again.

    Test Dice is measured against the number of corrected cases. Further --key value pairs go to every training.
    """
    from medssl.review.simulation.rounds import Rounds, write_rounds
    from medssl.sweep import SweepRow

    row = SweepRow("review", bundle, tuple(overlay or ()))
    plan = Rounds(
        row,
        keys_of(context.args),
        output_dir,
        strategies.split(","),
        start,
        per_round,
        number,
        numbers_of(seeds),
        trust,
    )
    for path in write_rounds(plan.run(jobs), output_dir):
        console.print(path)
    console.print((output_dir / "rounds.md").read_text(), highlight=False, markup=False, soft_wrap=True)
