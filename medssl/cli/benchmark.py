"""Compare methods on one's own data, with equal compute."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medssl.cli.app import KEYS, app, console, say
from medssl.cli.shared_options import Overlays, Trust
from medssl.cli.values import keys_of, numbers_of
from medssl.core.errors import ConfigError
from medssl.core.progress import work

if TYPE_CHECKING:
    from medssl.benchmark import Benchmark


@app.command(context_settings=KEYS)
def benchmark(
    context: typer.Context,
    data: Annotated[Path, typer.Argument(help="The folder of the data set.")],
    output_dir: Annotated[Path, typer.Option(help="Folder for the runs and the tables.")],
    methods: Annotated[
        str, typer.Option(help="Methods, e.g. pseudo_bank,bcp, or all. Supervised training is always a row.")
    ] = "mean_teacher,bcp,pseudo_bank",
    labelled: Annotated[str, typer.Option(help="Numbers of labelled cases, e.g. 4,8.")] = "4",
    seeds: Annotated[str, typer.Option(help="Random seeds.")] = "0,1,2",
    passes: Annotated[
        int | None, typer.Option(min=1, help="Compute of each training, in patches forward and backward.")
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="Time for all trainings, e.g. 2h or 90min; a pilot training finds --passes.")
    ] = None,
    folds: Annotated[
        int | None, typer.Option(min=2, help="Test folds: every scan is tested once. Default: one part is tested.")
    ] = None,
    dataset_name: Annotated[str, typer.Option(help="Name of the data set; folder: images and labels.")] = "folder",
    overlay: Overlays = None,
    choose: Annotated[
        bool, typer.Option("--choose", help="Train the recommended method on all labels, too, and export it.")
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Number of trainings at a time; they share the cores.")] = 1,
    trust: Trust = False,
) -> None:
    """Find the method for your data: train several with equal compute and compare them.

    Every row has the same compute, network, augmentation and labelled scans. The last checkpoint is tested. Further
    --key value pairs go to every training. After a stop, give the same command again: it continues.
    """
    if (passes is None) == (budget is None):
        raise ConfigError("a benchmark needs its compute: give --passes, e.g. 8000, or --budget, e.g. 2h.")
    counts, draws = numbers_of(labelled, "labelled", "4,8"), numbers_of(seeds, "seeds", "0,1,2")
    if not data.is_dir():
        raise ConfigError(f"{data}: no such folder. Expected the folder of a data set.")
    say(f"Comparing methods on {data} into {output_dir}.")
    with work("opening MONAI"):
        from dataclasses import replace

        from medssl.benchmark import BenchmarkPlan, methods_of
        from medssl.benchmark.budget import passes_within
        from medssl.sweep import train_all

    keys = keys_of(context.args)
    plan = BenchmarkPlan(
        dataset_name, data, methods_of(methods), counts, draws, passes or 0, output_dir, folds, overlay or (), keys
    )
    if budget is not None:
        from medssl.review.effort import parse_budget

        plan = replace(plan, passes=passes_within(plan, parse_budget(budget), jobs))
        say(f"Each training has {plan.passes} patch passes.")
    result = _told(train_all(plan.trainings(), jobs, trust), output_dir)
    if choose:
        from medssl.benchmark.verdict import recommended

        final = plan.final_training(recommended(result, max(counts)))
        say(f"Training {final.row.name} on all labels.")
        train_all([final], jobs, trust)
        say(f"The network is in {final.folder}. Next: medssl predict SCANS predictions --bundle {final.folder}")


def _told(folders: list[Path], output: Path) -> "Benchmark":
    """What the finished runs show; says which method to take."""
    import shlex
    import sys

    from medssl.benchmark import benchmark_of
    from medssl.benchmark.tables import print_benchmark, write_benchmark
    from medssl.report import write_comparison

    with work("comparing the runs"):
        result = benchmark_of(folders)
        command = " ".join(["medssl", *map(shlex.quote, sys.argv[1:])])
        page = write_benchmark(result, output, command)
        write_comparison(result.comparison, output / "comparison.html")
    print_benchmark(result, console)
    say(f"tables: {page}")
    return result
