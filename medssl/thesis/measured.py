"""What our runs measured for every cell of a table, and how much its rows differ."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from medssl.metrics.catalogue import SCAN_METRICS, Metric
from medssl.report.comparison.differences import Difference, differences
from medssl.report.comparison.rows import compare_runs
from medssl.report.run import Run
from medssl.report.runs import load_run
from medssl.report.tables import Stat
from medssl.thesis.plan import Plan, PlannedCell, is_finished


@dataclass(frozen=True)
class MeasuredCell:
    """A row in a setting. runs: those that are finished, by seed. stats: of each metric over their seeds."""

    planned: PlannedCell
    runs: list[Run]
    stats: dict[str, Stat] = field(default_factory=dict)

    @property
    def lack(self) -> str:
        """Why there is no number of ours; empty where there is one."""
        if self.runs:
            return ""
        if self.planned.method is None:
            return "quoted"
        if not self.planned.is_registered:
            return "not there yet"
        return "no data" if self.planned.place is None else "not run"


@dataclass(frozen=True)
class Measured:
    """A table as far as it was made. differences: of every row to the row that the table is taken against."""

    plan: Plan
    cells: list[MeasuredCell]
    differences: list[Difference]

    def metric(self, name: str) -> Metric:
        """The metric of this name, as the runs' task shows it."""
        shown = next((cell.runs[0].task.metrics for cell in self.cells if cell.runs), SCAN_METRICS)
        return next((metric for metric in shown if metric.name == name), Metric(name, name.replace("_", " ")))

    @property
    def runs(self) -> list[Run]:
        """All finished runs, each once."""
        return list({run.folder: run for cell in self.cells for run in cell.runs}.values())


def measure(plan: Plan, output: Path) -> Measured:
    """What is finished of a plan; runs stand under the names of the thesis' rows."""
    cells = [_measured_cell(plan, cell, output) for cell in plan.cells]
    return Measured(plan, cells, _differences(plan, cells))


def _measured_cell(plan: Plan, cell: PlannedCell, output: Path) -> MeasuredCell:
    loaded = [load_run(folder) for folder in plan.run_folders(cell, output) if is_finished(folder)]
    runs = [_named(run, cell.row.name) for run in loaded if run.per_case]
    return MeasuredCell(cell, runs, compare_runs(runs)[0].stats if runs else {})


def _named(run: Run, name: str) -> Run:
    """The run under the name of a row; the facts go with it, since they may be known by the title that it loses."""
    return replace(run, facts={**run.facts, "method": name, "method_facts": run.method_facts.to_json()})


def _differences(plan: Plan, cells: list[MeasuredCell]) -> list[Difference]:
    """Every row minus the row that has the entry's `against`, in its first metric; none without runs of that row."""
    baseline = next((row.name for row in plan.entry.rows if row.method == plan.entry.against), None)
    runs = list({run.folder: run for cell in cells for run in cell.runs}.values())
    if baseline is None or baseline not in {run.method for run in runs}:
        return []
    wanted = [metric for metric in runs[0].task.metrics if metric.name == plan.entry.metrics[0]]
    return differences(runs, [baseline], wanted)
