"""The `medssl` command: parsing only. Training itself is `python -m monai.bundle run training ...`."""

import logging
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from medssl.core.errors import ConfigError, MedsslError, error_behind

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
simulate = typer.Typer(no_args_is_help=True, help="Does the review queue help? A reviewer who knows the labels tries.")
app.add_typer(simulate, name="simulate-review")
console = Console()
EXIT_BAD_DATA, EXIT_SOME_FAILED = 1, 3


@app.command("check-data")
def check_data(
    folder: Annotated[Path, typer.Argument(help="The data set's folder, or any folder with images/ and labels/.")],
    dataset: Annotated[str, typer.Option(help="Data set name; its label ids are checked too.")] = "folder",
) -> None:
    """Check every scan and label; print a table of findings. The exit code is not 0 if there are errors."""
    from medssl.data.datasets import dataset_facts
    from medssl.data.validate import check_cases, findings_table

    facts = dataset_facts(dataset)
    cases = facts.find(folder)
    findings = check_cases(cases, facts.label_ids if facts.targets else None)
    if findings:
        console.print(findings_table(findings))
    labelled = sum("label" in case for case in cases)
    console.print(f"{len(cases)} scans, {labelled} with a label, {len(findings)} findings.")
    if any(finding.severity == "error" for finding in findings):
        raise typer.Exit(EXIT_BAD_DATA)


@app.command()
def bundles(
    path: Annotated[str | None, typer.Option(metavar="NAME", help="Print the path of this bundle, no more.")] = None,
    copy: Annotated[
        tuple[str, Path] | None, typer.Option(metavar="NAME FOLDER", help="Copy a bundle to a new folder, to edit.")
    ] = None,
) -> None:
    """List the bundles that come with medssl: what they train, where they lie; print the path of one, or copy it."""
    from medssl.core.shipped_bundles import bundle_path, bundles_table, copy_bundle

    if path is not None and copy is not None:
        raise ConfigError("--path and --copy: only one at a time. Give one of them.")
    if path is not None:
        typer.echo(bundle_path(path))
    elif copy is not None:
        target = copy_bundle(*copy)
        training = f"python -m monai.bundle run training --config_file {target / 'configs' / 'train.json'}"
        console.print(f"{copy[0]} is in {target}. Train it: {training}", highlight=False, markup=False, soft_wrap=True)
    else:
        console.print(bundles_table())


@app.command("check-bundle")
def check_bundle(
    folder: Annotated[Path, typer.Argument(help="A bundle's folder.")],
) -> None:
    """Read a bundle's configs without running them; list what could do harm. The exit code is not 0 if there is any."""
    from medssl.security import check_bundle as findings_of

    findings = findings_of(folder)
    for finding in findings:
        console.print(finding, highlight=False, markup=False)
    console.print(f"{len(findings)} findings in {folder}.")
    if findings:
        raise typer.Exit(EXIT_BAD_DATA)


@app.command()
def phantom(
    folder: Annotated[Path, typer.Argument(help="Where the scans are written.")],
    count: Annotated[int, typer.Option(help="Number of scans.")] = 40,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 0,
    modality: Annotated[str, typer.Option(help="ct or mr.")] = "ct",
) -> None:
    """Make phantom scans with labels: something to try everything on."""
    from medssl.data.phantom import write_phantoms

    ids = write_phantoms(folder, count, seed, modality)
    console.print(f"{len(ids)} scans in {folder}")


@app.command()
def predict(
    scans: Annotated[Path, typer.Argument(help="A scan, a folder of scans, or a DICOM series.")],
    output: Annotated[Path, typer.Argument(help="Folder for <id>_seg, _prob and _entropy .nii.gz.")],
    bundle: Annotated[Path, typer.Option(help="A trained bundle, or the folder of a finished run.")],
    samples: Annotated[int | None, typer.Option(help="Monte Carlo samples; default: as trained.")] = None,
    shard: Annotated[
        str, typer.Option(help="i/n: this process takes every n-th scan, starting with the i-th.")
    ] = "1/1",
    mode: Annotated[
        str | None, typer.Option(help="How samples are drawn: fast, exact or reference; default: as trained.")
    ] = None,
    backend: Annotated[
        str | None, typer.Option(help="What computes: eager, compile, openvino or int8; default: as trained.")
    ] = None,
    stride: Annotated[str, typer.Option(help="Of the windows, e.g. 64,64,16; default: as trained.")] = "",
    probabilities: Annotated[bool, typer.Option(help="Write _prob too.")] = True,
    dicom: Annotated[
        bool, typer.Option("--dicom", help="Of DICOM series, write _seg, _entropy and _bands .dcm too.")
    ] = False,
) -> None:
    """Segment scans and map the uncertainty; finished scans are skipped. Exit code 3 if any failed (failures.json)."""
    from medssl.core.distributed import local_device
    from medssl.data.layouts import scans_in
    from medssl.inference import PredictionEngine, load_predictor

    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("medssl").setLevel(logging.INFO)
    steps = _numbers(stride) if stride else None
    chosen = {"samples": samples, "mode": mode, "backend": backend, "stride": steps}
    predictor = load_predictor(bundle, **chosen, device=str(local_device()))
    engine = PredictionEngine(predictor, scans_in(scans), output, shard, probabilities, dicom)
    engine.run()
    counts = f"{len(engine.finished)} predicted, {len(engine.skipped)} already there, {len(engine.failures)} failed"
    console.print(f"{counts}; results in {output}")
    if engine.failures:
        for case, reason in engine.failures.items():
            console.print(f"[red]{case}[/red]: {reason}", highlight=False)
        raise typer.Exit(EXIT_SOME_FAILED)


@app.command()
def review(
    source: Annotated[Path, typer.Argument(help="The folder of a finished run; or a scan, or a folder of scans.")],
    bundle: Annotated[Path | None, typer.Option(help="Trained bundle or run that predicts the scans first.")] = None,
    predictions: Annotated[
        Path | None, typer.Option(help="What 'medssl predict', or a run, made of the scans.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder for worklist.csv and review.html; default: RUN/review, or ./review.")
    ] = None,
    strategy: Annotated[
        str, typer.Option(help="uncertain, structure (the least certain one) or random.")
    ] = "uncertain",
    structure: Annotated[str | None, typer.Option(help="The one that counts, with --strategy structure.")] = None,
    budget: Annotated[str | None, typer.Option(help="Time there is, e.g. 30min, 1h30 or 90s.")] = None,
    seed: Annotated[int, typer.Option(help="Of a random order.")] = 0,
    samples: Annotated[
        int | None, typer.Option(help="Monte Carlo samples, with --bundle; default: as trained.")
    ] = None,
    pictures: Annotated[int, typer.Option(min=0, help="Cases shown with pictures; the rest are table rows.")] = 24,
    slices: Annotated[int, typer.Option(min=1, max=5, help="Pictures a case.")] = 3,
    open_seconds: Annotated[float, typer.Option(help="Effort: to open a case.")] = 30.0,
    slice_seconds: Annotated[float, typer.Option(help="Effort: for each slice that needs looking at.")] = 2.0,
    area_seconds: Annotated[float, typer.Option(help="Effort: for each uncertain square centimetre.")] = 2.0,
    uncertain_bits: Annotated[float, typer.Option(help="Effort: a voxel above this is uncertain.")] = 0.5,
    slice_mm2: Annotated[float, typer.Option(help="Effort: a slice with so much uncertain area needs it.")] = 20.0,
) -> None:
    """Rank cases by their need of a human; write worklist.csv and review.html. Exit code 3 if any failed."""
    from medssl.review.effort import Effort, parse_budget
    from medssl.review.queue import build_queue
    from medssl.review.review_page import write_page
    from medssl.review.sources import open_source
    from medssl.review.strategies import check_strategy
    from medssl.review.tables import print_queue
    from medssl.review.worklist import write_worklist

    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("medssl").setLevel(logging.INFO)
    check_strategy(strategy, structure)
    effort = Effort(open_seconds, slice_seconds, area_seconds, uncertain_bits, slice_mm2)
    seconds = None if budget is None else parse_budget(budget)
    folder = output or (source / "review" if (source / "run.json").is_file() else Path("review"))
    cases = open_source(source, bundle, predictions, folder / "predictions", samples)
    with console.status(f"looking at {len(cases.cases)} cases"):
        queue = build_queue(cases, strategy, structure, seed, effort, seconds)
        table = write_worklist(queue, folder / "worklist.csv")
        page = write_page(queue, folder / "review.html", pictures, slices)
    print_queue(queue, console)
    console.print(f"worklist: {table}\npage: {page}", highlight=False, markup=False)
    if queue.failures:
        raise typer.Exit(EXIT_SOME_FAILED)


@app.command()
def samples(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    values: Annotated[str, typer.Option(help="Numbers of Monte Carlo samples.")] = "1,2,5,10,20,50",
    cases: Annotated[int | None, typer.Option(min=1, help="Only the first test cases; default: all.")] = None,
) -> None:
    """Measure time and quality against the number of samples; write RUN/samples.csv for the report."""
    from medssl.core.run_folder import read_facts
    from medssl.report.tasks import task_of

    task = task_of(read_facts(run), run / "run.json")
    path = task.write_sample_curve(run, _numbers(values), cases)
    console.print(f"{path}: shown by 'medssl report {run}'")


@app.command("compare-modes")
def compare_modes(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    side: Annotated[
        list[str] | None,
        typer.Option(help="A mode, with a stride of its own or without: fast@8,8,8; the others differ from the first."),
    ] = None,
    samples: Annotated[int | None, typer.Option(min=1, help="Monte Carlo samples; default: as trained.")] = None,
    stride: Annotated[str, typer.Option(help="Of the windows, e.g. 8,8,8; default: as trained.")] = "",
    cases: Annotated[int | None, typer.Option(min=1, help="Only the first test cases; default: all.")] = None,
    again: Annotated[
        int | None,
        typer.Option(min=0, help="Of these the first that get another seed, too; default: all."),
    ] = None,
) -> None:
    """Is fast the same as reference? Predict the test cases by both, or by each --side; write RUN/modes.csv."""
    from medssl.inference.compare_modes import DEFAULT_SIDES, KIND, Side, write_mode_comparison
    from medssl.inference.comparison import summary_table

    sides = [Side.parse(text) for text in side] if side else DEFAULT_SIDES
    path, rows = write_mode_comparison(run, sides, samples, _numbers(stride) if stride else None, cases, again)
    console.print(summary_table(KIND, rows))
    console.print(f"cases: {path}", highlight=False, markup=False)


@app.command()
def quantise(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    samples: Annotated[int | None, typer.Option(min=1, help="Monte Carlo samples; default: as trained.")] = None,
    stride: Annotated[str, typer.Option(help="Of the windows; default: as trained.")] = "",
    cases: Annotated[int | None, typer.Option(min=1, help="Only the first validation cases; default: all.")] = None,
    windows: Annotated[int, typer.Option(min=1, help="Windows of training scans to calibrate with.")] = 32,
) -> None:
    """Make int8 graphs for --backend int8, measure what they lose on the validation cases (RUN/int8.csv), print it."""
    from medssl.inference.comparison import summary_table
    from medssl.inference.quantise import KIND, quantise_run

    graphs, rows = quantise_run(run, samples, _numbers(stride) if stride else None, cases, windows)
    console.print(summary_table(KIND, rows))
    if graphs.record["measured"]["role"] == "test":
        console.print("There are no validation cases: this was measured on test cases.")
    console.print(f"{graphs.measured_loss()}\ngraphs: {graphs.folder}", highlight=False, markup=False, soft_wrap=True)


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(help="The folder of a run; several are compared.")],
    output: Annotated[Path, typer.Option(help="Page that compares several runs.")] = Path("comparison.html"),
    against: Annotated[
        list[str] | None,
        typer.Option(help="Method that all others are compared with, case by case; may be repeated."),
    ] = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="Of these differences, besides Dice, e.g. hd95; may be repeated.")
    ] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the tables of several runs as Markdown, too.")] = None,
) -> None:
    """Write RUN/report.html and print its table; with several runs, a page and tables that compare them.

    --against also writes the differences beside the page, as <page>_differences.csv.
    """
    from medssl.report import (
        PAPER_CROP_NOTICE,
        compare,
        load_run,
        print_comparison,
        summary_table,
        write_comparison,
        write_differences_csv,
        write_markdown,
        write_report,
    )

    if metric and not against:
        raise ConfigError("--metric: names what differences are taken of; give a method with --against, too.")
    if len(runs) == 1:
        if against or markdown:
            raise ConfigError(f"--against and --markdown compare runs, and {runs[0]} is only one. Give several.")
        run = load_run(runs[0])
        if run.paper_crop:
            console.print(PAPER_CROP_NOTICE)
        console.print(summary_table(run))
        console.print(f"report: {write_report(runs[0])}")
        return
    comparison = compare(runs, against or (), metric or ())
    print_comparison(comparison, console)
    console.print(f"report: {write_comparison(comparison, output)}")
    if against:
        table = output.with_name(f"{output.stem}_differences.csv")
        console.print(f"differences: {write_differences_csv(comparison.differences, table)}")
    if markdown:
        console.print(f"markdown: {write_markdown(comparison, markdown)}")


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
) -> None:
    """Train a grid of variants x labels x seeds, compare; further --key value pairs go to all. Run again to resume."""
    from medssl.sweep import sweep_of_bundle, sweeps_of_file

    keys = _pairs(context.args)
    if grid.suffix == ".json":
        sweeps = sweeps_of_file(grid, output, keys)
    else:
        names = [name for name in variants.split(",") if name]
        numbers = _numbers(labelled), _numbers(seeds)
        sweeps = [sweep_of_bundle(grid, output, *numbers, overlay or (), names, vary or (), keys)]
    report([folder for sweep in sweeps for folder in sweep.run(jobs)], output / "comparison.html")


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
) -> None:
    """Test Dice against corrected cases over rounds of training; further --key value pairs go to every training."""
    from medssl.review.simulation.rounds import Rounds, write_rounds
    from medssl.sweep import SweepRow

    row = SweepRow("review", bundle, tuple(overlay or ()))
    plan = Rounds(
        row, dict(_pairs(context.args)), output, strategies.split(","), start, per_round, number, _numbers(seeds)
    )
    for path in write_rounds(plan.run(jobs), output):
        console.print(path)
    console.print((output / "rounds.md").read_text(), highlight=False, markup=False, soft_wrap=True)


@app.command()
def label(
    studies: Annotated[str, typer.Option(help="A folder of scans or DICOM series, or a DICOMweb archive's address.")],
    bundle: Annotated[Path | None, typer.Option(help="Trained bundle or run's folder; default: newest run.")] = None,
    host: Annotated[str, typer.Option(help="Another one than this machine needs MONAI Label's sign-on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port on this machine.")] = 8000,
    samples: Annotated[int | None, typer.Option(min=1, help="Monte Carlo samples; default: as trained.")] = None,
    strategy: Annotated[str, typer.Option(help="Proposed first: uncertain, structure or random.")] = "uncertain",
    search_filter: Annotated[str | None, typer.Option(help="Modality of the DICOM series, e.g. MR.")] = None,
    workspace: Annotated[Path | None, typer.Option(help="For models and logs; default: beside the studies.")] = None,
    proposals: Annotated[
        bool,
        typer.Option(
            "--proposals",
            help="Store each segmentation a viewer asks for in the archive, as a DICOM SEG that OHIF can correct. "
            "DICOMweb cannot delete: they stay until you remove them in the archive.",
        ),
    ] = False,
) -> None:
    """Serve studies with MONAI Label: segment, see the uncertainty, review the most uncertain one first, learn."""
    from medssl.label_app.launch import LabelServer

    LabelServer(studies, bundle, host, port, samples, strategy, search_filter, workspace, proposals=proposals).serve()


@app.command()
def ui(
    runs_dir: Annotated[Path, typer.Option(help="Folder of the runs, with mlflow.db.")] = Path("runs"),
    port: Annotated[int, typer.Option(help="Port on this machine.")] = 5000,
) -> None:
    """Open the MLflow page of the runs, on this machine only."""
    from medssl.engine.tracking import default_tracking_uri

    store = default_tracking_uri(runs_dir)
    if store.startswith("http"):
        console.print(f"MLFLOW_TRACKING_URI names a server: open {store}")
        return
    console.print(f"MLflow on http://127.0.0.1:{port} (Ctrl-C ends it)")
    command = [
        sys.executable,
        "-m",
        "mlflow",
        "ui",
        "--backend-store-uri",
        store,
        "--host",
        "127.0.0.1",
        "--workers",
        "1",
    ]
    raise typer.Exit(subprocess.run([*command, "--port", str(port)], check=False).returncode)


def _pairs(extra: list[str]) -> tuple[tuple[str, str], ...]:
    if len(extra) % 2 or not all(key.startswith("--") for key in extra[::2]):
        raise ConfigError(f"{' '.join(extra)}: expected further keys of train.json as --key value pairs.")
    return tuple((key[2:], value) for key, value in zip(extra[::2], extra[1::2], strict=True))


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError(f"'{text}': expected whole numbers separated by commas, e.g. 4,16.") from None


def main() -> None:
    """Run the command; an error of medssl is printed as its text alone."""
    try:
        app()
    except (MedsslError, RuntimeError) as error:
        known = error_behind(error)  # MONAI wraps what is raised while a bundle is put together
        if known is None:
            raise
        print(f"{type(known).__name__}: {known}", file=sys.stderr)
        raise SystemExit(EXIT_BAD_DATA) from None


if __name__ == "__main__":
    main()
