"""What a benchmark shows: every method against supervised training of the same compute, and which one to take."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from medssl.benchmark.plan import UPPER_TITLE
from medssl.metrics.catalogue import DICE
from medssl.report.comparison.bootstrap import UNKNOWN, Interval
from medssl.report.comparison.compare import Comparison, comparison_of
from medssl.report.comparison.folds import merged_folds
from medssl.report.comparison.pairing import pair_runs
from medssl.report.comparison.significance import holm, median_of_cases, two_sided_p
from medssl.report.run import Run, by_method
from medssl.report.runs import load_run
from medssl.report.tables import by_case, case_mean

BASELINE = "supervised"
LEVEL = 0.05


@dataclass(frozen=True)
class MethodResult:
    """A method with so many labels, against supervised training. Numbers are Dice in points.

    p: by the bootstrap, corrected by Holm for all methods and numbers of labels of the benchmark. failed: scans, over
    all seeds, with less than half of the baseline's median Dice. gap_closed: share of what all labels would bring.
    """

    method: str
    labelled: int
    dice: float
    difference: float
    interval: Interval
    p: float
    median: float
    failed: int
    gap: float
    gap_closed: float
    seeds: int
    cases: int
    passes: float

    @property
    def is_better(self) -> bool:
        """Whether the gain is clear: the interval excludes zero, and so does the corrected test."""
        return self.difference > 0 and self.interval.excludes_zero and self.p < LEVEL


@dataclass(frozen=True)
class Benchmark:
    """results: by number of labels, then by method, the baseline first. comparison: the tables of all metrics."""

    results: list[MethodResult]
    comparison: Comparison


def benchmark_of(folders: Sequence[str | Path]) -> Benchmark:
    """What the finished runs of a benchmark show."""
    loaded = [load_run(folder) for folder in folders]
    runs = merged_folds(loaded)
    upper = [run for run in runs if run.method == UPPER_TITLE]
    others = [run for run in runs if run.method != UPPER_TITLE]
    results: list[MethodResult] = []
    for labelled in sorted({int(run.facts["labelled"]) for run in others}):
        rows = by_method([run for run in others if int(run.facts["labelled"]) == labelled])
        results += [_result(method, labelled, rows, upper) for method in _baseline_first(rows)]
    tested = [result for result in results if np.isfinite(result.p)]
    corrected = dict(zip(map(id, tested), holm([result.p for result in tested]), strict=True))
    results = [replace(result, p=corrected.get(id(result), result.p)) for result in results]
    return Benchmark(results, comparison_of(loaded, [BASELINE]))


def sentence(benchmark: Benchmark) -> str:
    """Which method to take for these data, in one sentence for each number of labels."""
    texts = []
    for labelled in sorted({result.labelled for result in benchmark.results}):
        best = _best(benchmark, labelled)
        labels = f"With {labelled} label{'' if labelled == 1 else 's'}"
        if best is not None:
            texts.append(
                f"{labels}, take {best.method}: {best.difference:+.2f} points of Dice over supervised training of the "
                f"same compute, interval [{best.interval.low:+.2f}, {best.interval.high:+.2f}]."
            )
        else:
            texts.append(f"{labels}, none is clearly better than supervised training of the same compute: take that.")
    return " ".join(texts)


def recommended(benchmark: Benchmark, labelled: int) -> str:
    """The title of the method to take with so many labels."""
    best = _best(benchmark, labelled)
    return BASELINE if best is None else best.method


def _best(benchmark: Benchmark, labelled: int) -> MethodResult | None:
    """The method with the largest clear gain; None where no gain is clear."""
    better = [result for result in benchmark.results if result.labelled == labelled and result.is_better]
    return max(better, key=lambda result: result.difference, default=None)


def _baseline_first(rows: dict[str, list[Run]]) -> list[str]:
    return sorted(rows, key=lambda method: method != BASELINE)


def _result(method: str, labelled: int, rows: dict[str, list[Run]], upper: Sequence[Run]) -> MethodResult:
    runs, baseline = rows[method], rows.get(BASELINE, [])
    dice, reference = _dice(runs), _dice(baseline)
    gap = 100 * (_mean(_dice(upper)) - _mean(reference))
    gain = pair_runs(runs, baseline, DICE) if method != BASELINE and baseline else None
    values = np.empty((0, 0)) if gain is None else 100 * gain.values
    has_pairs = bool(values.size)
    difference = float(values.mean()) if has_pairs else float("nan")
    interval, p = two_sided_p(values, gain.patients) if gain is not None and has_pairs else (UNKNOWN, float("nan"))
    limit = np.median(list(reference.values())) / 2 if reference else float("nan")
    return MethodResult(
        method=method,
        labelled=labelled,
        dice=100 * _mean(dice),
        difference=difference,
        interval=interval,
        p=p,
        median=median_of_cases(values) if has_pairs else float("nan"),
        failed=sum(bool(value < limit) for value in dice.values()),
        gap=gap,
        gap_closed=difference / gap if has_pairs and gap > 0 else float("nan"),
        seeds=len({run.facts["seed"] for run in runs if run.per_case}),
        cases=len({case for _, case in dice}),
        passes=_passes(runs),
    )


def _dice(runs: Sequence[Run]) -> dict[tuple[int, str], float]:
    """(Seed, case) -> Dice, structures averaged."""
    return {
        (int(run.facts["seed"]), case): value
        for run in runs
        for case, rows in by_case(run.per_case).items()
        if np.isfinite(value := case_mean(rows, DICE))
    }


def _mean(dice: dict[tuple[int, str], float]) -> float:
    return float(np.mean(list(dice.values()))) if dice else float("nan")


def _passes(runs: Sequence[Run]) -> float:
    """The mean compute of the runs, in patch passes; NaN where it was not counted."""
    used = [sum(stage["units"] for stage in run.facts.get("patch_passes", {}).values()) for run in runs]
    return float(np.mean(used)) if used and all(used) else float("nan")
