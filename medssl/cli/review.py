"""The review queue of a run or of new scans."""

import logging
from pathlib import Path
from typing import Annotated

import typer

from medssl.cli.app import EXIT_SOME_FAILED, app, console, say
from medssl.cli.trust import Trust
from medssl.core.bundle_folder import bundle_root
from medssl.core.prediction_options import checked_sampling
from medssl.core.progress import work


@app.command()
def review(
    source: Annotated[Path, typer.Argument(help="The folder of a finished run; or a scan, or a folder of scans.")],
    bundle: Annotated[Path | None, typer.Option(help="Trained bundle or run that predicts the scans first.")] = None,
    predictions: Annotated[
        Path | None, typer.Option(help="What 'medssl predict', or a run, made of the scans.")
    ] = None,
    output_dir: Annotated[
        Path | None, typer.Option(help="Folder for worklist.csv and review.html; default: RUN/review, or ./review.")
    ] = None,
    strategy: Annotated[
        str, typer.Option(help="uncertain, structure (the least certain one) or random.")
    ] = "uncertain",
    structure: Annotated[str | None, typer.Option(help="The one that counts, with --strategy structure.")] = None,
    budget: Annotated[str | None, typer.Option(help="Time there is, e.g. 30min, 1h30 or 90s.")] = None,
    seed: Annotated[int, typer.Option(help="Of a random order.")] = 0,
    samples: Annotated[
        int | None,
        typer.Option(help="Monte Carlo samples, with --bundle; 0: one pass. Default: as trained."),
    ] = None,
    pictures: Annotated[int, typer.Option(min=0, help="Cases shown with pictures; the rest are table rows.")] = 24,
    slices: Annotated[int, typer.Option(min=1, max=5, help="Pictures a case.")] = 3,
    open_seconds: Annotated[float, typer.Option(help="Effort: to open a case.")] = 30.0,
    slice_seconds: Annotated[float, typer.Option(help="Effort: for each slice that needs looking at.")] = 2.0,
    area_seconds: Annotated[float, typer.Option(help="Effort: for each uncertain square centimetre.")] = 2.0,
    uncertain_bits: Annotated[float, typer.Option(help="Effort: a voxel above this is uncertain.")] = 0.5,
    slice_mm2: Annotated[float, typer.Option(help="Effort: uncertain area above which a slice needs a look.")] = 20.0,
    trust: Trust = False,
) -> None:
    """Rank cases by their need of a human.

    The order is written to worklist.csv and shown in review.html. The exit code is 3 if a case failed.
    """
    checked_sampling({"samples": samples})
    if bundle is not None:
        bundle_root(bundle)
    say(f"Ranking the cases of {source} by their need of a human ...")
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
