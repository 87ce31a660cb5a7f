"""The figures of a run as PNG files, for MLflow and for slides."""

from contextlib import suppress
from pathlib import Path

from medssl.core.errors import MedsslError
from medssl.core.files import write_bytes_atomically
from medssl.report.figures.style import figure_png
from medssl.report.figures.training import training_curves
from medssl.report.runs import load_run


def write_figures(run_folder: str | Path) -> list[Path]:
    """Writes what can be drawn of the run into `figures/` and returns the files."""
    run = load_run(run_folder)
    figures = {"training_curves": training_curves(run)} if run.history else {}
    for name, draw in run.task.figures(run).items():
        with suppress(MedsslError):  # scans and pictures may have moved; the report says so
            figures[name] = draw()
    paths = []
    for name, figure in figures.items():
        path = run.folder / "figures" / f"{name}.png"
        write_bytes_atomically(path, figure_png(figure))
        paths.append(path)
    return paths
