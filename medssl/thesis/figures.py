"""The thesis' figures from runs: samples and times against T, coefficients, reconstructions, maps, classes."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure

from medssl.core.errors import MedsslError
from medssl.core.files import write_bytes_atomically, write_text_atomically
from medssl.core.progress import say
from medssl.core.run_files import SAMPLES
from medssl.report.comparison.coefficients import coefficient_curves
from medssl.report.figures.coefficients import coefficient_panels
from medssl.report.figures.pictures import Picture, picture
from medssl.report.figures.reconstructions import load_reconstructions, reconstruction_rows
from medssl.report.figures.sample_curves import read_samples, sample_curves
from medssl.report.figures.style import figure_png
from medssl.report.run import Run
from medssl.thesis.contents import Thesis
from medssl.thesis.curves import class_uncertainties, time_curves
from medssl.thesis.measured import Measured, MeasuredCell
from medssl.thesis.pages import table_html

Drawing = tuple[str, Callable[[], Figure]]  # caption, and what draws it


def write_figure(thesis: Thesis, measured: Measured, folder: Path, trust: bool = False) -> list[Path]:
    """Draw the entry's figure into NUMBER.html and NUMBER_1.png, ...; the files. What cannot be drawn is said."""
    number = measured.plan.entry.number
    folder.mkdir(parents=True, exist_ok=True)
    shown: list[tuple[str, Picture]] = []
    files: list[Path] = []
    for caption, draw in drawings(measured, trust):
        try:
            figure = draw()
        except MedsslError as error:  # scans may have moved since
            say(f"{caption}: not drawn. {error}")
            continue
        path = folder / f"{number}_{len(shown) + 1}.png"
        write_bytes_atomically(path, figure_png(figure))
        files.append(path)
        shown.append((caption, picture(lambda drawn=figure: drawn)))
    write_text_atomically(folder / f"{number}.html", table_html(thesis, measured, shown))
    return [folder / f"{number}.html", *files]


def drawings(measured: Measured, trust: bool = False) -> list[Drawing]:
    """What can be drawn of an entry's finished runs."""
    ways: dict[str, Callable[[Measured], list[Drawing]]] = {
        "samples": partial(_samples, trust=trust),
        "times": partial(_times, trust=trust),
        "maps": _maps,
        "coefficients": _coefficients,
        "reconstructions": _reconstructions,
        "class_uncertainty": _classes,
    }
    return ways[measured.plan.entry.details["draw"]](measured)


def _samples(measured: Measured, trust: bool) -> list[Drawing]:
    """Time and quality against T of every run."""
    shown: list[Drawing] = []
    for cell, run in _first_runs(measured):
        _require_samples(run, measured.plan.entry.details["values"], trust)
        shown.append((_caption(cell), partial(sample_curves, read_samples(run.folder, run.task), run.task)))
    return shown


def _times(measured: Measured, trust: bool) -> list[Drawing]:
    """Time against T of all rows together, a figure for each setting."""
    by_setting: dict[str, dict[str, Run]] = {}
    for cell, run in _first_runs(measured):
        _require_samples(run, measured.plan.entry.details["values"], trust)
        by_setting.setdefault(_setting_text(cell), {})[cell.planned.row.name] = run
    return [
        (text, partial(time_curves, {name: read_samples(run.folder, run.task) for name, run in runs.items()}))
        for text, runs in by_setting.items()
    ]


def _maps(measured: Measured) -> list[Drawing]:
    """Cases with their label, prediction and uncertainty, as the run's own report shows them."""
    shown: list[Drawing] = []
    for cell, run in _first_runs(measured):
        figures = run.task.figures(run)
        named = [name for name in figures if name.startswith("case_") or name in ("scenes", "telling_pictures")]
        shown += [(f"{_caption(cell)}, {name.replace('_', ' ')}", figures[name]) for name in named]
    return shown


def _coefficients(measured: Measured) -> list[Drawing]:
    """Panels of the main metric against every coefficient, a figure for each setting."""
    by_setting: dict[str, list[Run]] = {}
    for cell in measured.cells:
        by_setting.setdefault(_setting_text(cell), []).extend(cell.runs)
    curves = {text: coefficient_curves(runs) for text, runs in by_setting.items()}
    return [
        (text, partial(coefficient_panels, of_setting, by_setting[text][0].task.main))
        for text, of_setting in curves.items()
        if of_setting
    ]


def _reconstructions(measured: Measured) -> list[Drawing]:
    stored = [(_caption(cell), load_reconstructions(run.folder)) for cell, run in _first_runs(measured)]
    return [(caption, partial(reconstruction_rows, pictures)) for caption, pictures in stored if pictures is not None]


def _classes(measured: Measured) -> list[Drawing]:
    """Accuracy of every class against its uncertainty at all label amounts, a figure for each data set."""
    by_dataset: dict[str, dict[str, Run]] = {}
    for cell, run in _first_runs(measured):
        place = cell.planned.place
        if place is not None and run.measured.get("classes"):
            by_dataset.setdefault(place.dataset.title, {})[f"{place.labelled} labels"] = run
    return [(title, partial(class_uncertainties, amounts)) for title, amounts in by_dataset.items()]


def _first_runs(measured: Measured) -> list[tuple[MeasuredCell, Run]]:
    """Every cell that has runs, with the one of its first seed."""
    return [(cell, cell.runs[0]) for cell in measured.cells if cell.runs]


def _require_samples(run: Run, values: Sequence[int], trust: bool) -> None:
    """Measure the run with these numbers of samples, unless it was."""
    if not (run.folder / SAMPLES).is_file():
        trusted = {"trust": True} if trust else {}  # a task of another package may not know it
        run.task.write_sample_curve(run.folder, values, None, **trusted)


def _caption(cell: MeasuredCell) -> str:
    return f"{cell.planned.row.name}, {_setting_text(cell)}"


def _setting_text(cell: MeasuredCell) -> str:
    place = cell.planned.place
    return cell.planned.setting.name if place is None else f"{place.dataset.title}, {place.labelled} labelled"
