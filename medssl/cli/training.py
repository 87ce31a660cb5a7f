"""Commands that train and evaluate: short forms of MONAI's own."""

import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from medssl.cli.app import EXIT_STOPPED, KEYS, app, say
from medssl.cli.report import report
from medssl.cli.shared_options import FinishedRun, Overlays, Trust
from medssl.cli.values import keys_of, numbers_of
from medssl.core.progress import LINE_SECONDS, SIGN_OF_LIFE, work


@app.command(context_settings=KEYS)
def train(
    context: typer.Context,
    bundle: Annotated[str, typer.Argument(help="A name that 'medssl bundles' lists, or the folder of a bundle.")],
    overlay: Overlays = None,
    trust: Trust = False,
) -> None:
    """Train a bundle. Further --key value pairs are its keys, e.g. --dataset_name liver --dataset_dir data.

    The command first prints the MONAI command that does the same, then runs it.
    """
    from medssl.core.stock_command import config_files, find_bundle

    folder = find_bundle(bundle)
    files = config_files(folder, "train", overlay or ())
    _run("training", [folder], files, keys_of(context.args), trust)


@app.command(context_settings=KEYS)
def evaluate(
    context: typer.Context,
    run: FinishedRun,
    trust: Trust = False,
) -> None:
    """Evaluate a finished run again. Further --key value pairs are keys of evaluate.json, e.g. --samples 50.

    The command first prints the MONAI command that does the same, then runs it.
    """
    from medssl.core.errors import ConfigError
    from medssl.core.run_folder import read_facts
    from medssl.core.stock_command import config_files, evaluate_config, find_bundle

    given = keys_of(context.args)
    if "output_dir" in given:
        raise ConfigError(
            f"output_dir {given['output_dir']}: an evaluation is written into the folder of its run, {run}. "
            "Leave --output_dir out."
        )
    facts = read_facts(run)
    stored = facts.get("bundle_root")
    folder = Path(stored) if stored and Path(stored, "configs").is_dir() else find_bundle(facts["bundle"])
    trusted = {"trust": "true"} if trust else {}  # for the process that opens the run's own bundle
    keys = {**given, "output_dir": str(run), **trusted}
    files = config_files(folder, evaluate_config(folder, facts))
    _run("evaluating", [folder, run], files, keys, trust)


def _run(run_id: str, bundles: list[Path], files: list[Path], keys: dict[str, str], trust: bool) -> None:
    """Run MONAI's command in a process of its own, if nothing in the bundles that it opens could do harm."""
    from medssl.core.shipped_bundles import shipped_bundles
    from medssl.core.stock_command import as_run, as_typed, stock_command

    arguments = stock_command(run_id, files, keys)
    say(as_typed(arguments))
    strange = [bundle for bundle in bundles if bundle not in shipped_bundles().values()]
    if strange and not trust:
        from medssl.security import require_harmless

        for bundle in strange:
            require_harmless(bundle)
    with tempfile.TemporaryDirectory() as folder:
        sign = Path(folder) / "speaks"
        process = subprocess.Popen(as_run(arguments), env={**os.environ, SIGN_OF_LIFE: str(sign)})
        try:
            _tell_until(sign, process)
            code = process.wait()
        except KeyboardInterrupt:  # the terminal has told the process, too: it ends by itself
            process.wait()
            code = EXIT_STOPPED
    raise typer.Exit(code)


def _tell_until(sign: Path, process: subprocess.Popen) -> None:
    """Say every few seconds that the process is starting, until it speaks itself: MONAI and torch take their time."""
    began = last = time.monotonic()
    while process.poll() is None and not sign.exists():
        time.sleep(0.1)
        if time.monotonic() - last > LINE_SECONDS - 0.5:
            last = time.monotonic()
            say(f"starting MONAI ({last - began:.0f} s)")


@app.command(context_settings=KEYS)
def sweep(
    context: typer.Context,
    grid: Annotated[Path, typer.Argument(help="A bundle, by its name or folder, or a JSON file that lists grids.")],
    output_dir: Annotated[Path, typer.Option(help="Folder for the runs.")],
    labelled: Annotated[
        str, typer.Option(help="Numbers of labelled cases, e.g. 4,16; needed unless the grid is a file.")
    ] = "",
    seeds: Annotated[str, typer.Option(help="Random seeds, e.g. 0,1,2; not for a file.")] = "0",
    variants: Annotated[
        str, typer.Option(help="Variants or methods of the bundle, e.g. gbdl,ic,volume; not for a file.")
    ] = "",
    vary: Annotated[
        list[str] | None,
        typer.Option(help="A key and the values to try, e.g. kl_weight=0.0005,0.005; may be repeated."),
    ] = None,
    overlay: Overlays = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of trainings at a time; they share the cores.")] = 1,
    trust: Trust = False,
) -> None:
    """Train variants x labels x seeds, then compare. Further --key value pairs go to every training.

    After a stop, give the same command again: it continues.
    """
    from medssl.core.errors import ConfigError
    from medssl.core.stock_command import config_files, find_bundle

    keys = tuple(keys_of(context.args).items())
    is_file = grid.suffix == ".json"
    numbers: tuple[list[int], list[int]] = ([], [])
    if not is_file:
        config_files(find_bundle(grid), "train", overlay or ())
        if not labelled:
            raise ConfigError(f"{grid}: a sweep of a bundle needs numbers of labels, e.g. --labelled 4,16.")
        numbers = numbers_of(labelled, "labelled", "4,16"), numbers_of(seeds, "seeds", "0,1,2")
    say(f"Sweeping {grid} into {output_dir}.")
    with work("opening MONAI"):
        from medssl.sweep import sweep_of_bundle, sweeps_of_file

    if is_file:
        sweeps = sweeps_of_file(grid, output_dir, keys, trust)
    else:
        names = [name for name in variants.split(",") if name]
        sweeps = [sweep_of_bundle(find_bundle(grid), output_dir, *numbers, overlay or (), names, vary or (), keys)]
    report([folder for sweep in sweeps for folder in sweep.run(jobs, trust)], output_dir)
