"""The review queue of a run or of new scans."""

import logging
from pathlib import Path
from typing import Annotated

import typer

from medssl.cli.app import EXIT_SOME_FAILED, app, console, say
from medssl.cli.shared_options import Trust
from medssl.core.bundle_folder import bundle_root
from medssl.core.prediction_options import checked_sampling
from medssl.core.progress import work


@app.command()
def review(
    source: Annotated[Path, typer.Argument(help="The folder of a finished run, a scan, or a folder of scans.")],
    bundle: Annotated[Path | None, typer.Option(help="Trained bundle or run; it predicts the scans first.")] = None,
    predictions: Annotated[
        Path | None, typer.Option(help="Folder with predictions of the scans, from 'medssl predict' or a run.")
    ] = None,
    output_dir: Annotated[
        Path | None, typer.Option(help="Folder for worklist.csv and review.html; default: RUN/review, or ./review.")
    ] = None,
    strategy: Annotated[
        str, typer.Option(help="Order: uncertain, structure (by the least certain structure) or random.")
    ] = "uncertain",
    structure: Annotated[
        str | None, typer.Option(help="With --strategy structure: the only structure that counts.")
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="Time for the review, e.g. 30min, 1h30 or 90s; the page marks what fits.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed for --strategy random.")] = 0,
    samples: Annotated[
        int | None,
        typer.Option(help="With --bundle: number of Monte Carlo samples; 0: one pass. Default: as trained."),
    ] = None,
    pictures: Annotated[
        int, typer.Option(min=0, help="Number of cases shown with pictures; the rest are table rows.")
    ] = 24,
    slices: Annotated[int, typer.Option(min=1, max=5, help="Number of pictures of each case.")] = 3,
    open_seconds: Annotated[float, typer.Option(help="Effort: seconds to open a case.")] = 30.0,
    slice_seconds: Annotated[float, typer.Option(help="Effort: seconds for each slice that needs a look.")] = 2.0,
    area_seconds: Annotated[float, typer.Option(help="Effort: seconds for each uncertain square centimetre.")] = 2.0,
    uncertain_bits: Annotated[
        float, typer.Option(help="Effort: a voxel with more entropy, in bits, is uncertain.")
    ] = 0.5,
    slice_mm2: Annotated[
        float, typer.Option(help="Effort: a slice with this uncertain area, in mm2, needs a look.")
    ] = 20.0,
    trust: Trust = False,
) -> None:
    """Rank cases by how much they need a human.

    The command writes worklist.csv and the page review.html. The exit code is 3 if a case failed.
    """
    checked_sampling({"samples": samples})
    if bundle is not None:
        bundle_root(bundle)
    say(f"Ranking the cases of {source} by how much they need a human ...")
    with work("loading libraries"):
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
    folder = output_dir or (source / "review" if (source / "run.json").is_file() else Path("review"))
    cases = open_source(source, bundle, predictions, folder / "predictions", samples, trust)
    queue = build_queue(cases, strategy, structure, seed, effort, seconds)
    table = write_worklist(queue, folder / "worklist.csv")
    page = write_page(queue, folder / "review.html", pictures, slices)
    print_queue(queue, console)
    console.print(f"worklist: {table}\npage: {page}", highlight=False, markup=False)
    if queue.failures:
        raise typer.Exit(EXIT_SOME_FAILED)
