"""Measure whether the review queue helps."""

from pathlib import Path
from typing import Annotated

import typer

from medssl.cli.app import KEYS, Commands, app, console
from medssl.cli.shared_options import Trust
from medssl.cli.values import keys_of, numbers_of

simulate = Commands(help=__doc__)
app.add_typer(simulate, name="simulate-review")


@simulate.command()
def inspect(
    runs: Annotated[
        list[Path], typer.Argument(help="Folders of finished runs; runs that differ only in the seed count together.")
    ],
    output_dir: Annotated[Path, typer.Option(help="Folder for the results: inspection.csv, .md and .png.")],
) -> None:
    """Count how soon a simulated reviewer finds the errors.

    The reviewer looks at slices, or voxels, one after the other. Four orders are compared: by uncertainty, by the
    predicted outline, at random, and an oracle that knows the errors.
    """
    from medssl.review.simulation.inspection import inspect_runs, write_inspections

    for path in write_inspections(inspect_runs(runs), output_dir):
        console.print(path)
    console.print((output_dir / "inspection.md").read_text(), highlight=False, markup=False, soft_wrap=True)


@simulate.command(context_settings=KEYS)
def rounds(
    context: typer.Context,
    bundle: Annotated[Path, typer.Argument(help="A bundle, by its name or folder, e.g. mcdropout_unet3d.")],
    output_dir: Annotated[Path, typer.Option(help="Folder for the runs and for rounds.csv, .md and .png.")],
    start: Annotated[int, typer.Option(min=1, help="Number of labelled cases before the first review.")] = 4,
    per_round: Annotated[int, typer.Option(min=1, help="Number of cases reviewed in each round.")] = 4,
    number: Annotated[int, typer.Option("--rounds", min=1, help="Number of rounds of review and training.")] = 3,
    seeds: Annotated[str, typer.Option(help="Random seeds, e.g. 0,1,2.")] = "0",
    strategies: Annotated[str, typer.Option(help="Orders of review to compare.")] = "uncertain,random,oracle",
    overlay: Annotated[
        list[str] | None,
        typer.Option(help="Overlay of the bundle, e.g. bench, or a JSON file with keys; may be repeated."),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes at a time; they share the cores.")] = 1,
    trust: Trust = False,
) -> None:
    """Simulate rounds of review, correction and training.

    It measures the test Dice for each number of labelled cases. Further --key value pairs go to every training.
    """
    from medssl.core.stock_command import find_bundle
    from medssl.review.simulation.rounds import Rounds, write_rounds
    from medssl.sweep import SweepRow

    row = SweepRow("review", find_bundle(bundle), tuple(overlay or ()))
    plan = Rounds(
        row,
        keys_of(context.args),
        output_dir,
        strategies.split(","),
        start,
        per_round,
        number,
        numbers_of(seeds, "seeds", "0,1,2"),
        trust,
    )
    for path in write_rounds(plan.run(jobs), output_dir):
        console.print(path)
    console.print((output_dir / "rounds.md").read_text(), highlight=False, markup=False, soft_wrap=True)
