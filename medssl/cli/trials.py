"""Commands that try a finished run in other ways: more samples, other modes, whole numbers."""

from typing import Annotated

import typer

from medssl.cli.app import app, console, say
from medssl.cli.shared_options import FinishedRun, SomeSamples, Stride, TestCases, Trust
from medssl.cli.values import numbers_of
from medssl.core.bundle_folder import bundle_root
from medssl.core.errors import ConfigError
from medssl.core.prediction_options import checked_sampling, rising_counts
from medssl.core.progress import work


@app.command()
def samples(
    run: FinishedRun,
    values: Annotated[str, typer.Option(help="Numbers of Monte Carlo samples to try.")] = "1,2,5,10,20,50",
    cases: TestCases = None,
    trust: Trust = False,
) -> None:
    """Measure quality and time for several numbers of samples.

    The results are written to RUN/samples.csv. The report shows them.
    """
    counts = rising_counts(numbers_of(values, "values", "1,5,20"))
    if not run.is_dir():
        bundle_root(run)  # says which folder is nearest
    if not (run / "run.json").is_file():
        raise ConfigError(f"{run}: no run.json. Give the folder of a finished run.")
    say(f"Predicting test cases of {run} with {', '.join(map(str, counts))} samples ...")
    with work("loading libraries"):
        from medssl.core.run_folder import read_facts
        from medssl.report.tasks import task_of

        task = task_of(read_facts(run), run / "run.json")
    trusted = {"trust": True} if trust else {}  # a task of another package may not know it
    path = task.write_sample_curve(run, counts, cases, **trusted)
    console.print(f"{path}: shown by 'medssl report {run}'")


@app.command("compare-modes")
def compare_modes(
    run: FinishedRun,
    side: Annotated[
        list[str] | None,
        typer.Option(
            help="A mode, with its stride or without, e.g. fast@8,8,8; all others are compared with the first."
        ),
    ] = None,
    samples: SomeSamples = None,
    stride: Stride = "",
    cases: TestCases = None,
    again: Annotated[
        int | None,
        typer.Option(min=0, help="Number of cases, the first ones, to predict with another seed, too; default: all."),
    ] = None,
    trust: Trust = False,
) -> None:
    """Measure how far fast predictions differ from reference ones.

    It predicts the test cases in both modes, or with each --side. It writes the differences to RUN/modes.csv.
    """
    chosen = checked_sampling({"samples": samples, "stride": numbers_of(stride, "stride") if stride else None})
    bundle_root(run)
    say(f"Comparing {' with '.join(side or ('reference', 'fast'))} on the test cases of {run} ...")
    with work("loading libraries"):
        from medssl.inference.compare_modes import DEFAULT_SIDES, KIND, Side, write_mode_comparison
        from medssl.inference.comparison import summary_table

    sides = [Side.parse(text) for text in side] if side else DEFAULT_SIDES
    path, rows = write_mode_comparison(run, sides, samples, chosen.get("stride"), cases, again, trust=trust)
    console.print(summary_table(KIND, rows))
    console.print(f"cases: {path}", highlight=False, markup=False)


@app.command()
def quantise(
    run: FinishedRun,
    samples: SomeSamples = None,
    stride: Stride = "",
    cases: Annotated[
        int | None, typer.Option(min=1, help="Number of validation cases to predict, the first ones; default: all.")
    ] = None,
    windows: Annotated[int, typer.Option(min=1, help="Number of windows of training scans for the calibration.")] = 32,
    trust: Trust = False,
) -> None:
    """Make 8-bit graphs for --backend int8, and measure what they lose.

    The loss is measured on the validation cases and written to RUN/int8.csv.
    """
    chosen = checked_sampling({"samples": samples, "stride": numbers_of(stride, "stride") if stride else None})
    bundle_root(run)
    say(f"Making int8 graphs of {run} and measuring what they lose ...")
    with work("loading libraries"):
        from medssl.inference.comparison import summary_table
        from medssl.inference.quantise import KIND, quantise_run

    graphs, rows = quantise_run(run, samples, chosen.get("stride"), cases, windows, trust=trust)
    console.print(summary_table(KIND, rows))
    if graphs.record["measured"]["role"] == "test":
        console.print("There are no validation cases: this was measured on test cases.")
    console.print(f"{graphs.measured_loss()}\ngraphs: {graphs.folder}", highlight=False, markup=False, soft_wrap=True)
