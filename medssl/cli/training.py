"""Commands that train."""

from pathlib import Path
from typing import Annotated

import typer

from medssl.cli.app import app
from medssl.cli.report import report
from medssl.cli.trust import Trust
from medssl.cli.values import numbers_of, pairs_of


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def sweep(
    context: typer.Context,
    grid: Annotated[Path, typer.Argument(help="A bundle, e.g. bundles/gbdl, or a JSON file of grids.")],
    output: Annotated[Path, typer.Option(help="Folder of the runs.")],
    labelled: Annotated[str, typer.Option(help="Numbers of labels, e.g. 4,16 (a bundle needs them).")] = "",
    seeds: Annotated[str, typer.Option(help="Seeds, e.g. 0,1,2 (for a bundle).")] = "0",
    variants: Annotated[str, typer.Option(help="Variants, e.g. gbdl,ic,volume (for a bundle that has them).")] = "",
    vary: Annotated[
        list[str] | None, typer.Option(help="A key and its values, e.g. kl_weight=0.0005,0.005; may be repeated.")
    ] = None,
    overlay: Annotated[
        list[str] | None, typer.Option(help="Overlay of train.json, e.g. bench; may be repeated (for a bundle).")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Trainings at a time; they share the cores.")] = 1,
    trust: Trust = False,
) -> None:
    """Train a grid of variants x labels x seeds, compare; further --key value pairs go to all. Run again to resume."""
    from medssl.sweep import sweep_of_bundle, sweeps_of_file

    keys = pairs_of(context.args)
    if grid.suffix == ".json":
        sweeps = sweeps_of_file(grid, output, keys, trust)
    else:
        names = [name for name in variants.split(",") if name]
        numbers = numbers_of(labelled), numbers_of(seeds)
        sweeps = [sweep_of_bundle(grid, output, *numbers, overlay or (), names, vary or (), keys)]
    report([folder for sweep in sweeps for folder in sweep.run(jobs, trust)], output / "comparison.html")
