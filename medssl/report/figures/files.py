"""The figures of a run as PNG files, for MLflow and for slides."""

from contextlib import suppress
from pathlib import Path

from matplotlib.figure import Figure

from medssl.core.errors import MedsslError
from medssl.core.files import write_bytes_atomically
from medssl.report.figures.cases import dice_strip, entropy_against_dice
from medssl.report.figures.panels import case_panel
from medssl.report.figures.slices import load_case
from medssl.report.figures.style import figure_png
from medssl.report.figures.thesis import thesis_figures
from medssl.report.figures.training import training_curves
from medssl.report.runs import Run, load_run
from medssl.report.tables import telling_cases


def write_figures(run_folder: str | Path) -> list[Path]:
    """Writes what can be drawn of the run into `figures/` and returns the files."""
    run = load_run(run_folder)
    figures = {"training_curves": training_curves(run)} if run.history else {}
    if run.kind == "segmentation":
        figures |= _figures_of_scans(run)
    else:
        from natural_image_ext.report import FIGURES  # noqa: PLC0415  (an extra)

        for name, draw in FIGURES[run.kind](run).items():
            with suppress(MedsslError):  # pictures may have moved; the report says so
                figures[name] = draw()
    paths = []
    for name, figure in figures.items():
        path = run.folder / "figures" / f"{name}.png"
        write_bytes_atomically(path, figure_png(figure))
        paths.append(path)
    return paths


def _figures_of_scans(run: Run) -> dict[str, Figure]:
    figures = {name: draw() for name, draw in thesis_figures(run).items() if draw}
    if run.per_case:
        figures |= {"dice": dice_strip(run.per_case), "entropy_against_dice": entropy_against_dice(run.per_case)}
        figures |= _case_figures(run)
    return figures


def _case_figures(run: Run) -> dict[str, Figure]:
    figures = {}
    for name, case in telling_cases(run.per_case).items():
        try:
            figures[f"case_{name.lower()}"] = case_panel(load_case(run, case), run.structures, run.facts.get("window"))
        except MedsslError:  # the scan may have moved; the report says so
            continue
    return figures
