"""How much better or worse every method is than a baseline, paired by test case and seed, with intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from medssl.core.csv_files import write_rows
from medssl.core.errors import ConfigError
from medssl.metrics.catalogue import DICE, Metric
from medssl.report.comparison.bootstrap import UNKNOWN, Interval, case_interval, crossed_interval
from medssl.report.comparison.pairing import pair_runs
from medssl.report.run import Run, by_method

CSV_COLUMNS = (
    "dataset",
    "labelled",
    "paper_crop",
    "metric",
    "unit",
    "baseline",
    "method",
    "difference",
    "seeds_and_cases_low",
    "seeds_and_cases_high",
    "excludes_zero",
    "cases_low",
    "cases_high",
    "n_seeds",
    "n_cases",
    "n_patients",
    "per_seed",
    "notes",
)


@dataclass(frozen=True)
class Difference:
    """Method minus baseline: in points (hundredths) for shares such as Dice, in mm for distances.

    over_seeds_and_cases covers other seeds and other patients, over_cases other patients with these very trainings (see
    bootstrap.py). Where nothing could be paired the numbers are NaN and the notes say why.
    """

    dataset: str
    labelled: int
    paper_crop: bool
    baseline: str
    method: str
    metric: Metric
    mean: float = math.nan
    over_seeds_and_cases: Interval = UNKNOWN
    over_cases: Interval = UNKNOWN
    per_seed: dict[int, float] = field(default_factory=dict)
    cases: int = 0
    patients: int = 0
    notes: tuple[str, ...] = ()

    @property
    def is_clear(self) -> bool:
        """True where the interval over seeds and cases excludes zero."""
        return self.over_seeds_and_cases.excludes_zero


def differences(runs: Sequence[Run], against: Sequence[str], metrics: Sequence[Metric] = (DICE,)) -> list[Difference]:
    """Every method minus every baseline in `against`, for each data set and number of labels.

    Runs with paper_crop are only paired with such. Raises ConfigError for a baseline that none of the runs is.
    """
    baselines = [_method_named(name, runs) for name in dict.fromkeys(against)]
    groups: dict[tuple[str, int, bool], list[Run]] = {}
    for run in runs:
        group = (str(run.facts["dataset"]), int(run.facts["labelled"]), run.paper_crop)
        groups.setdefault(group, []).append(run)
    rows = []
    for group in sorted(groups, key=lambda group: (group[0], -group[1], group[2])):
        methods = by_method(groups[group])
        for metric, baseline in product(metrics, baselines):
            others = [method for method in methods if method != baseline]
            rows += [_difference(group, baseline, method, metric, methods) for method in others]
    return rows


def metric_named(name: str, metrics: Sequence[Metric]) -> Metric:
    """Which of `metrics` is meant by `name`, for example 'HD95'. Raises ConfigError."""
    for metric in metrics:
        if name.casefold() in (metric.name, metric.option):
            return metric
    raise ConfigError(f"metric '{name}': unknown. Known: {', '.join(metric.option for metric in metrics)}.")


def write_differences_csv(rows: Sequence[Difference], path: str | Path) -> Path:
    """One line per difference, numbers unrounded; returns the path."""
    write_rows(Path(path), CSV_COLUMNS, [_csv_row(row) for row in rows], line_end="\n")
    return Path(path)


def _method_named(name: str, runs: Sequence[Run]) -> str:
    methods = by_method(runs)
    for method in methods:
        if method.casefold() == name.casefold():
            return method
    raise ConfigError(f"--against '{name}': none of the runs has this method. Found: {'; '.join(methods)}.")


def _difference(
    group: tuple[str, int, bool], baseline: str, method: str, metric: Metric, methods: dict[str, list[Run]]
) -> Difference:
    pairs = pair_runs(methods[method], methods.get(baseline, []), metric)
    if not pairs.values.size:
        return Difference(*group, baseline, method, metric, notes=tuple(pairs.notes))
    values = metric.unit.scale * pairs.values
    return Difference(
        *group,
        baseline,
        method,
        metric,
        mean=float(values.mean()),
        over_seeds_and_cases=crossed_interval(values, pairs.patients),
        over_cases=case_interval(values, pairs.patients),
        per_seed=dict(zip(pairs.seeds, values.mean(axis=1).tolist(), strict=True)),
        cases=len(pairs.cases),
        patients=len(set(pairs.patients)),
        notes=tuple(pairs.notes),
    )


def _csv_row(row: Difference) -> dict[str, str | int]:
    return {
        "dataset": row.dataset,
        "labelled": row.labelled,
        "paper_crop": str(row.paper_crop).lower(),
        "metric": row.metric.name,
        "unit": row.metric.unit.difference,
        "baseline": row.baseline,
        "method": row.method,
        "difference": _plain(row.mean),
        "seeds_and_cases_low": _plain(row.over_seeds_and_cases.low),
        "seeds_and_cases_high": _plain(row.over_seeds_and_cases.high),
        "excludes_zero": str(row.is_clear).lower(),
        "cases_low": _plain(row.over_cases.low),
        "cases_high": _plain(row.over_cases.high),
        "n_seeds": len(row.per_seed),
        "n_cases": row.cases,
        "n_patients": row.patients,
        "per_seed": "; ".join(f"{seed}: {_plain(value)}" for seed, value in row.per_seed.items()),
        "notes": "; ".join(row.notes),
    }


def _plain(value: float) -> str:
    """Six decimals, blank where there is no number."""
    return f"{value:.6f}" if math.isfinite(value) else ""
