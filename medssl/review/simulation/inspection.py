"""Errors found against work done within the test cases of finished runs, and whether uncertainty finds them sooner."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from medssl.core.csv_files import write_rows
from medssl.core.errors import DataError
from medssl.core.files import write_text_atomically
from medssl.report.comparison.bootstrap import UNKNOWN, Interval
from medssl.report.comparison.markdown import grid_markdown
from medssl.report.figures.slices import load_case
from medssl.report.grids import Cell, Column, Grid, GridRow
from medssl.report.run import Run
from medssl.report.runs import load_run
from medssl.review.simulation.discovery import ORDERS, UNITS, Curve, case_curves
from medssl.review.simulation.gains import area_cell, gain_cell, mean_of

COLUMNS = ("dataset", "method", "labelled", "seed", "case", "unit", "order", "area")
WORK = np.linspace(0, 1, 101)

Key = tuple[str, str]  # unit, order


@dataclass(frozen=True)
class Inspection:
    """Runs that differ in their seed alone. areas: (unit, order) -> (seeds, cases); curves: their mean.

    Cases that some seed has no error in are left out (`faultless`): there is nothing to find.
    """

    dataset: str
    method: str
    labelled: int
    seeds: list[int]
    cases: list[str]
    patients: list[str]
    faultless: list[str]
    areas: dict[Key, np.ndarray]
    curves: dict[Key, Curve]

    def area(self, unit: str, order: str) -> tuple[float, Interval]:
        """Mean area below the curve, and its interval."""
        return mean_of(self.areas[unit, order], self.patients) if self.cases else (math.nan, UNKNOWN)

    def gain(self, unit: str, over: str) -> tuple[float, Interval]:
        """How much larger the area of the order by uncertainty is than that of another one, and its interval."""
        if not self.cases:
            return math.nan, UNKNOWN
        differences = self.areas[unit, "uncertainty"] - self.areas[unit, over]
        return mean_of(differences, self.patients)


def inspect_runs(folders: Sequence[str | Path]) -> list[Inspection]:
    """The runs, grouped by data set, method and number of labels. Raises DataError where one has no predictions."""
    groups: dict[tuple[str, str, int], list[Run]] = {}
    for folder in folders:
        run = load_run(folder)
        if not run.task.of_scans or not run.per_case:
            raise DataError(f"{folder}: no evaluated scans. Give the folders of finished trainings on scans.")
        facts = run.facts
        groups.setdefault((str(facts["dataset"]), str(facts["method"]), int(facts["labelled"])), []).append(run)
    return [_inspect(*key, runs) for key, runs in sorted(groups.items())]


def write_inspections(inspections: Sequence[Inspection], folder: str | Path) -> list[Path]:
    """Write inspection.csv (every case), inspection.md (means and gains) and inspection.png into `folder`."""
    from medssl.review.simulation.figures import write_inspection_figure  # noqa: PLC0415  (matplotlib takes a second)

    folder = Path(folder)
    write_rows(folder / "inspection.csv", COLUMNS, [row for inspection in inspections for row in _rows(inspection)])
    write_text_atomically(folder / "inspection.md", grid_markdown(inspection_grid(inspections)) + "\n")
    write_inspection_figure(inspections, folder / "inspection.png")
    return [folder / f"inspection.{kind}" for kind in ("csv", "md", "png")]


def inspection_grid(inspections: Sequence[Inspection]) -> Grid:
    """Mean areas and gains, a row for each group of runs and unit of work."""
    texts = [Column(title, "text") for title in ("Data set", "Method", "Labelled", "Inspected")]
    others = [order for order in ORDERS if order != "uncertainty"]
    titles = [*(f"{order.capitalize()} order" for order in ORDERS), *(f"Gain over {order}" for order in others)]
    lines = []
    for inspection in inspections:
        group = (inspection.dataset, inspection.method, str(inspection.labelled))
        for unit in UNITS:
            named = [Cell(text) for text in (*group, unit)]
            areas = [area_cell(*inspection.area(unit, order)) for order in ORDERS]
            gains = [gain_cell(*inspection.gain(unit, over)) for over in others]
            lines.append(GridRow([*named, *areas, *gains]))
    return Grid([*texts, *(Column(title) for title in titles)], lines)


def _inspect(dataset: str, method: str, labelled: int, runs: Sequence[Run]) -> Inspection:
    runs = sorted(runs, key=lambda run: run.facts["seed"])
    curves_by_seed = {int(run.facts["seed"]): _curves_of(run) for run in runs}
    if len(curves_by_seed) < len(runs):
        raise DataError(f"{runs[0].folder}: a seed of {method} on {dataset} comes twice. Give each run once.")
    curves_of_seeds = list(curves_by_seed.values())
    shared = sorted(set.intersection(*(set(curves) for curves in curves_of_seeds)))
    faultless = [case for case in shared if any(_has_no_error(curves[case]) for curves in curves_of_seeds)]
    cases = [case for case in shared if case not in faultless]
    patients = {str(case["id"]): str(case.get("patient", case["id"])) for case in runs[0].split.get("cases", [])}
    keys = [(unit, order) for unit in UNITS for order in ORDERS]
    return Inspection(
        dataset,
        method,
        labelled,
        list(curves_by_seed),
        cases,
        [patients.get(case, case) for case in cases],
        faultless,
        {key: np.array([[curves[case][key].area for case in cases] for curves in curves_of_seeds]) for key in keys},
        {key: _mean_curve([curves[case][key] for case in cases for curves in curves_of_seeds]) for key in keys},
    )


def _curves_of(run: Run) -> dict[str, dict[Key, Curve]]:
    curves = {}
    for case in dict.fromkeys(str(row["case"]) for row in run.per_case):
        volumes = load_case(run, case)
        if volumes.label is None or volumes.entropy is None:
            raise DataError(f"{run.folder}: {case} has no label or no entropy map. Evaluate the run again.")
        curves[case] = case_curves(volumes.prediction, volumes.entropy, volumes.label, volumes.spacing_mm)
    return curves


def _mean_curve(curves: Sequence[Curve]) -> Curve:
    return Curve(WORK, np.mean([curve.at(WORK) for curve in curves], axis=0) if curves else np.full(len(WORK), np.nan))


def _has_no_error(curves: dict[Key, Curve]) -> bool:
    return math.isnan(curves["slices", "oracle"].found[-1])


def _rows(inspection: Inspection) -> list[dict]:
    return [
        {
            "dataset": inspection.dataset,
            "method": inspection.method,
            "labelled": inspection.labelled,
            "seed": seed,
            "case": case,
            "unit": unit,
            "order": order,
            "area": float(areas[place, column]),
        }
        for (unit, order), areas in inspection.areas.items()
        for place, seed in enumerate(inspection.seeds)
        for column, case in enumerate(inspection.cases)
    ]
