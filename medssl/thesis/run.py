"""From a plan to its table: the commands, the trainings, and what is written of them."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from medssl.core.errors import ConfigError
from medssl.core.files import write_text_atomically
from medssl.core.shipped_bundles import bundle_path
from medssl.core.stock_command import as_typed, stock_command
from medssl.sweep import Training, sweeps_of_file, train_all
from medssl.thesis.contents import Thesis
from medssl.thesis.figures import write_figure
from medssl.thesis.grids import grid_content, grid_text
from medssl.thesis.measured import Measured, measure
from medssl.thesis.pages import write_table
from medssl.thesis.plan import Plan

TABLES = "tables"


def write_grid(plan: Plan, folder: Path, overlays: Sequence[str]) -> Path:
    """Write the plan's trainings as a file of grids, which `medssl sweep` takes, too; returns it."""
    file = folder / f"{plan.entry.number}_grid.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    write_text_atomically(file, grid_text(grid_content(plan, bundle_path, tuple(overlays))))
    return file


def trainings_of(plan: Plan, grid: Path, output: Path, keys: Mapping[str, str], trust: bool) -> list[Training]:
    """The trainings in a file of grids, a seed finished for all before the next one begins."""
    sweeps = sweeps_of_file(grid, plan.folder(output), tuple(keys.items()), trust)
    trainings = [training for sweep in sweeps for training in sweep.trainings()]
    return sorted(trainings, key=lambda training: int(training.keys["seed"]))


def commands(plan: Plan, output: Path, overlays: Sequence[str], keys: Mapping[str, str], trust: bool) -> list[str]:
    """What a user would type for each training that is not finished; nothing is written."""
    with tempfile.TemporaryDirectory() as folder:
        trainings = trainings_of(plan, write_grid(plan, Path(folder), overlays), output, keys, trust)
    waiting = [training for training in trainings if not training.is_finished]
    return [as_typed(stock_command("training", training.row.files(), training.keys)) for training in waiting]


def train_and_write(
    thesis: Thesis,
    plan: Plan,
    output: Path,
    overlays: Sequence[str] = (),
    keys: Mapping[str, str] | None = None,
    jobs: int = 1,
    trust: bool = False,
) -> tuple[Measured, list[Path]]:
    """Train what is not finished, then write the table or figure; where trainings fail it is written of the others.

    ConfigError names the trainings that failed, after all is written.
    """
    folder = plan.folder(output) / TABLES
    grid = write_grid(plan, folder, overlays)
    failure = None
    try:
        train_all(trainings_of(plan, grid, output, keys or {}, trust), jobs, trust)
    except ConfigError as error:
        failure = error
    measured = measure(plan, output)
    if failure is not None and not measured.runs:
        raise failure
    is_table = plan.entry.kind == "table"
    files = write_table(thesis, measured, folder) if is_table else write_figure(thesis, measured, folder, trust)
    if failure is not None:
        raise ConfigError(f"{files[0]} is written of the runs that are finished. {failure}") from failure
    return measured, files
