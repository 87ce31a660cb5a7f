"""The trainings of a table or figure: which data set a setting is run on, and which runs fill which cell."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from medssl.core.errors import ConfigError, DataError
from medssl.thesis.contents import Dataset, Entry, Row, Setting, Thesis, ThesisMethod
from medssl.thesis.registered import is_registered

BENCH = "bench"


@dataclass(frozen=True)
class Place:
    """What a setting of the thesis is run on. labelled: the thesis' number, or what stands for it at bench size."""

    dataset: Dataset
    labelled: int | float
    keys: dict[str, Any]

    @property
    def title(self) -> str:
        """The folder of its runs, below that of all runs."""
        return f"{self.dataset.name}_{self.labelled}"


@dataclass(frozen=True)
class PlannedCell:
    """A row in a setting. method: None of a number that is only quoted. is_registered: the method can be trained here.

    place: None where the data set is missing, and so is what could stand in for it.
    """

    row: Row
    setting: Setting
    method: ThesisMethod | None
    is_registered: bool
    place: Place | None

    @property
    def can_run(self) -> bool:
        return self.is_registered and self.place is not None


@dataclass(frozen=True)
class Plan:
    """What is trained for an entry. data: the folder of all data sets. bench: at bench size, with stand-ins."""

    entry: Entry
    cells: tuple[PlannedCell, ...]
    seeds: tuple[int, ...]
    data: Path
    bench: bool = False

    def folder(self, output: Path) -> Path:
        """Where its runs and tables are: runs of bench size do not lie among those of full size."""
        return output / BENCH if self.bench else output

    def run_folders(self, cell: PlannedCell, output: Path) -> list[Path]:
        """The folders of a cell's runs, made or not, in the order of seeds; none where it cannot be run."""
        if cell.method is None or cell.place is None or not cell.is_registered:
            return []
        names = [f"{cell.method.name}_{cell.place.labelled}_seed{seed}" for seed in self.seeds]
        return [self.folder(output) / cell.place.title / name for name in names]

    def all_run_folders(self, output: Path) -> list[Path]:
        """Those of all cells, each once: cells may share runs."""
        return list(dict.fromkeys(folder for cell in self.cells for folder in self.run_folders(cell, output)))

    def missing_datasets(self) -> list[str]:
        """The names of the data sets that are missing, and that nothing stands in for."""
        return list(dict.fromkeys(cell.setting.dataset for cell in self.cells if cell.place is None))

    def stand_ins(self) -> dict[str, str]:
        """Thesis' setting -> what it was run on, where that is something else."""
        placed = [(cell.setting, cell.place) for cell in self.cells if cell.place is not None]
        return {
            f"{setting.dataset}, {setting.text}": f"{place.dataset.title}, {place.labelled} labelled"
            for setting, place in placed
            if place.dataset.name != setting.dataset or place.labelled != setting.labelled
        }

    def unregistered_rows(self) -> list[str]:
        """The names of the rows whose method is not there yet."""
        waiting = [cell.row.name for cell in self.cells if cell.method is not None and not cell.is_registered]
        return list(dict.fromkeys(waiting))


def make_plan(
    thesis: Thesis,
    entry: Entry,
    data: Path,
    bench: bool = False,
    seeds: Sequence[int] = (),
    without_data: bool = False,
) -> Plan:
    """The trainings of an entry on what is in `data`. seeds: default, as many as the thesis has.

    without_data: as if all data sets of the thesis were there.
    """
    cells = []
    for row, setting in entry.cells():
        place = _place(thesis, setting, data, bench, without_data)
        for varied, method in _methods_of(thesis, entry, row):
            cells.append(PlannedCell(varied, setting, method, method is not None and is_registered(method), place))
    return Plan(entry, tuple(cells), tuple(seeds) or tuple(range(entry.seeds)), data, bench)


def require_something_to_run(thesis: Thesis, plan: Plan) -> None:
    """ConfigError where no cell can be run, with what is missing and where it is from."""
    if any(cell.can_run for cell in plan.cells):
        return
    entry, missing = plan.entry, [thesis.datasets[name] for name in plan.missing_datasets()]
    if not entry.has_runs:
        where = f"; see {entry.details['code']} and {entry.details['test']}" if "code" in entry.details else ""
        raise ConfigError(f"{entry.label} has no results to make: {entry.compares}{where}.")
    if not any(cell.is_registered for cell in plan.cells):
        raise ConfigError(f"{entry.label}: none of its methods is there yet ({', '.join(plan.unregistered_rows())}).")
    places = "; ".join(f"{dataset.title} in {plan.data / dataset.folder} ({dataset.get})" for dataset in missing)
    way_out = "" if plan.bench else " Or try it with --bench on what is in the folder."
    raise DataError(f"{entry.label} needs data that are missing: {places}.{way_out}")


def is_finished(run_folder: Path) -> bool:
    """True where the training wrote that it came to its end."""
    facts = run_folder / "run.json"
    return facts.is_file() and json.loads(facts.read_text(encoding="utf-8")).get("status") == "finished"


def is_there(dataset: Dataset, data: Path) -> bool:
    """True where the data set's folder holds something."""
    folder = data / dataset.folder
    return folder.is_dir() and any(folder.iterdir())


def _place(thesis: Thesis, setting: Setting, data: Path, bench: bool, without_data: bool) -> Place | None:
    own = thesis.datasets[setting.dataset]
    candidates = [own, *(thesis.datasets[name] for name in own.stand_ins if bench)]
    dataset = next((known for known in candidates if without_data or is_there(known, data)), None)
    if dataset is None:
        return None
    if not bench:
        return Place(dataset, setting.labelled, setting.keys)
    labelled = dataset.bench.get("labelled", {}).get(str(setting.labelled), setting.labelled)
    return Place(dataset, labelled, dataset.bench.get("keys", {}))


def _methods_of(thesis: Thesis, entry: Entry, row: Row) -> list[tuple[Row, ThesisMethod | None]]:
    """The row with its method; where an entry varies coefficients, one row for each value of each of them."""
    method = None if row.method is None else thesis.methods[row.method]
    if method is None or "vary" not in entry.details:
        return [(row, method)]
    base = {**method.keys, **entry.details["base"]}
    varied: dict[str, tuple[Row, ThesisMethod | None]] = {}
    for key, values in entry.details["vary"].items():
        for value in values:
            is_base = value == base[key]
            name = f"{method.name}_all_1" if is_base else f"{method.name}_{key}_{value}"
            varied[name] = (replace(row, name=name), replace(method, name=name, keys={**base, key: value}))
    return list(varied.values())
