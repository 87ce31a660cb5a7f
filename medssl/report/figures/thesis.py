"""Figures of the thesis' chapter 3 that need more than an evaluation, for runs that have what they need."""

from collections.abc import Callable
from functools import partial

from matplotlib.figure import Figure

from medssl.report.figures.health import health_records, training_health
from medssl.report.figures.reconstructions import load_reconstructions, reconstruction_rows
from medssl.report.figures.sample_curves import read_samples, sample_curves
from medssl.report.figures.training import stage_starts
from medssl.report.run import Run


def thesis_figures(run: Run) -> dict[str, Callable[[], Figure] | None]:
    """'samples', 'health' and 'reconstructions', each a function that draws it, None where the run has no such thing.

    Raises DataError where a file is damaged.
    """
    samples = read_samples(run.folder, run.task)
    signs = health_records(run)
    reconstructions = load_reconstructions(run.folder)
    return {
        "samples": partial(sample_curves, samples, run.task) if samples else None,
        "health": partial(training_health, signs, stage_starts(run)) if signs else None,
        "reconstructions": partial(reconstruction_rows, reconstructions) if reconstructions else None,
    }
