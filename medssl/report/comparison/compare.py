"""Several runs side by side: their results, and how much the methods differ."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from medssl.core.errors import ConfigError
from medssl.metrics.catalogue import Metric
from medssl.report.comparison.coefficients import Curve, coefficient_curves, named_by_coefficients
from medssl.report.comparison.differences import Difference, differences, metric_named
from medssl.report.comparison.folds import merged_folds
from medssl.report.comparison.rows import ComparisonRow, compare_runs
from medssl.report.pavpu_region import WHOLE_SCAN
from medssl.report.run import Run, Task
from medssl.report.runs import load_run

PAPER_CROP_NOTICE = (
    "Regions were centred with ground-truth labels (paper_crop): these numbers are not comparable with leak-free ones."
)


@dataclass(frozen=True)
class Comparison:
    """rows: results over seeds. differences: to the baselines that were asked for. coefficients: Dice against each."""

    rows: list[ComparisonRow]
    differences: list[Difference]
    coefficients: dict[str, list[Curve]] = field(default_factory=dict)

    @property
    def notices(self) -> list[str]:
        """What a reader must know before the numbers."""
        unevaluated = [seed.name for row in self.rows for seed in row.seeds if not seed.means]
        notices = []
        if any(row.paper_crop for row in self.rows):
            notices.append(f"Rows marked paper_crop: {PAPER_CROP_NOTICE}")
        notices += _pavpu_notices(self.rows)
        if unevaluated:
            notices.append(f"Not evaluated, and not in the means: {', '.join(unevaluated)}.")
        return notices


def _pavpu_notices(rows: Sequence[ComparisonRow]) -> list[str]:
    """Where PAvPU was counted, unless all of it is over whole scans."""
    regions = sorted({seed.pavpu_region for row in rows for seed in row.seeds if seed.pavpu_region})
    if regions in ([], [WHOLE_SCAN]):
        return []
    if len(regions) == 1:
        return [f"PAvPU is counted over {regions[0]}."]
    return [f"PAvPU is counted over different regions ({'; '.join(regions)}): its values cannot be compared."]


def compare(run_folders: Sequence[str | Path], against: Sequence[str] = (), metrics: Sequence[str] = ()) -> Comparison:
    """The runs compared, and every method with each method named in `against`: in Dice, then in `metrics` ('hd95').

    Runs of other tasks are compared in the main metric of theirs instead of Dice. Runs of a method that differ in its
    coefficients are told apart by its name (named_by_coefficients). Raises DataError for a folder that is no run or a
    seed that comes twice, ConfigError for unknown names and for runs of different tasks.
    """
    return comparison_of([load_run(folder) for folder in run_folders], against, metrics)


def comparison_of(loaded: Sequence[Run], against: Sequence[str] = (), metrics: Sequence[str] = ()) -> Comparison:
    """As `compare`, of runs that are loaded already."""
    runs = named_by_coefficients(merged_folds(loaded))
    tasks = {run.task.name: run.task for run in runs}
    if len(tasks) > 1:
        raise ConfigError("runs of scans, pictures and scenes are of different kinds: compare each kind by itself.")
    wanted = [metric for task in tasks.values() for metric in _metrics_of_differences(task, metrics)]
    return Comparison(compare_runs(runs), differences(runs, against, wanted), coefficient_curves(runs))


def _metrics_of_differences(task: Task, names: Sequence[str]) -> list[Metric]:
    """The task's main metric, then the named ones, each once."""
    return list(dict.fromkeys([task.main, *(metric_named(name, task.metrics) for name in names)]))
