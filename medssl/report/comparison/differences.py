"""How much better or worse every method is than a baseline, paired by test case and seed, with intervals."""

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from medssl.core.errors import ConfigError
from medssl.core.files import write_text_atomically
from medssl.report.comparison.bootstrap import UNKNOWN, Interval, case_interval, crossed_interval
from medssl.report.comparison.method_order import method_rank
from medssl.report.comparison.pairing import pair_runs
from medssl.report.runs import Run
from medssl.report.tables import METRICS

UNITS = {
    "hd95_mm": "mm",
    "asd_mm": "mm",
    "assd_mm": "mm",
    "mean_entropy_bits": "bits",
    "uncertainty_nats": "nats",
    "mean_entropy_nats": "nats",
}
SCALES = {"points": 100.0, "mm": 1.0, "bits": 1.0, "nats": 1.0}
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
    """Method minus baseline in `unit`: points (hundredths) for shares such as Dice, mm for distances.

    over_seeds_and_cases covers other seeds and other patients, over_cases other patients with these very trainings (see
    bootstrap.py). Where nothing could be paired the numbers are NaN and the notes say why.
    """

    dataset: str
    labelled: int
    paper_crop: bool
    baseline: str
    method: str
    metric: str
    mean: float = math.nan
    over_seeds_and_cases: Interval = UNKNOWN
    over_cases: Interval = UNKNOWN
    per_seed: dict[int, float] = field(default_factory=dict)
    cases: int = 0
    patients: int = 0
    notes: tuple[str, ...] = ()

    @property
    def unit(self) -> str:
        return unit_of(self.metric)

    @property
    def is_clear(self) -> bool:
        """True where the interval over seeds and cases excludes zero."""
        return self.over_seeds_and_cases.excludes_zero


def differences(runs: Sequence[Run], against: Sequence[str], metrics: Sequence[str] = ("dice",)) -> list[Difference]:
    """Every method minus every baseline in `against`, for each data set and number of labels.

    Runs with paper_crop are only paired with such. Raises ConfigError for a baseline that none of the runs is.
    """
    baselines = [_method_named(name, runs) for name in dict.fromkeys(against)]
    groups: dict[tuple[str, int, bool], dict[str, list[Run]]] = {}
    for run in runs:
        place = (str(run.facts["dataset"]), int(run.facts["labelled"]), run.paper_crop)
        groups.setdefault(place, {}).setdefault(str(run.facts["method"]), []).append(run)
    found = []
    for place in sorted(groups, key=lambda place: (place[0], -place[1], place[2])):
        methods = groups[place]
        for metric, baseline in product(metrics, baselines):
            others = sorted(methods.keys() - {baseline}, key=method_rank)
            found += [_difference(place, baseline, method, metric, methods) for method in others]
    return found


def metric_named(name: str) -> str:
    """The column of per_case.csv that `name` means: 'HD95' -> 'hd95_mm'. Raises ConfigError."""
    wanted = name.casefold()
    for metric in METRICS:
        if wanted in (metric, metric.removesuffix("_mm")):
            return metric
    raise ConfigError(
        f"metric '{name}': unknown. Known: {', '.join(metric.removesuffix('_mm') for metric in METRICS)}."
    )


def unit_of(metric: str) -> str:
    """'points' (hundredths), 'mm', 'bits' or 'nats'."""
    return UNITS.get(metric, "points")


def write_differences_csv(rows: Sequence[Difference], path: str | Path) -> Path:
    """One line per difference, numbers unrounded; returns the path."""
    text = io.StringIO()
    writer = csv.DictWriter(text, CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_csv_row(row) for row in rows)
    write_text_atomically(path, text.getvalue())
    return Path(path)


def _method_named(name: str, runs: Sequence[Run]) -> str:
    methods = sorted({str(run.facts["method"]) for run in runs}, key=method_rank)
    for method in methods:
        if method.casefold() == name.casefold():
            return method
    raise ConfigError(f"--against '{name}': none of the runs has this method. Found: {'; '.join(methods)}.")


def _difference(
    place: tuple[str, int, bool], baseline: str, method: str, metric: str, methods: dict[str, list[Run]]
) -> Difference:
    pairs = pair_runs(methods[method], methods.get(baseline, []), metric)
    if not pairs.values.size:
        return Difference(*place, baseline, method, metric, notes=tuple(pairs.notes))
    values = SCALES[unit_of(metric)] * pairs.values
    return Difference(
        *place,
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
        "metric": row.metric,
        "unit": row.unit,
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
