"""Time, Dice and PAvPU against the number T of Monte Carlo samples (thesis, section 3.4): RUN/samples.csv."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from medssl.core.csv_files import write_rows
from medssl.core.distributed import local_device
from medssl.core.errors import ConfigError
from medssl.core.prediction_options import rising_counts
from medssl.core.progress import work
from medssl.core.run_files import SAMPLES
from medssl.core.run_folder import read_facts
from medssl.data.split import read_split, require_scans
from medssl.inference.evaluation import Evaluation, evaluation_folder
from medssl.inference.predictor import load_predictor
from medssl.metrics import dice
from medssl.metrics.catalogue import CASE_SECONDS, DICE, ECE, PAVPU, metric_names

COLUMNS = ("case", "samples", *metric_names((DICE, PAVPU, ECE, CASE_SECONDS)))


def write_sample_curve(
    run: str | Path, values: Sequence[int], limit: int | None = None, *, trust: bool = False
) -> Path:
    """Write samples.csv into the folder of a finished run: a row for each test case and number of samples.

    A case is sampled once, max(values) times, and scored after each of `values`; `seconds` is the time of the sampling
    up to there. Dice is the mean over the structures. limit: only the first cases. trust: as in `load_predictor`.
    Raises ConfigError.
    """
    counts = rising_counts(values)
    facts = read_facts(run)
    settings = {"samples": counts[-1], "device": str(local_device()), "paper_crop": facts["paper_crop"]}
    with work("opening the network"):
        predictor = load_predictor(run, trust=trust, **settings)
    cases = read_split(Path(run) / "split.json").role("test")[:limit]
    if not cases:
        raise ConfigError(f"{run}: no test cases to predict. Train with --test above 0, and give --cases above 0.")
    require_scans(Path(run) / "split.json", cases)
    evaluation = Evaluation(predictor, cases, evaluation_folder(run))
    rows: list[dict[str, Any]] = []
    with work("samples", len(cases), "cases") as progress:
        next(predictor.running(cases[0], (1,)))  # the first pass sets things up: no part of the time of a sample
        for case in cases:
            rows += case_rows(evaluation, case, counts)
            progress.advance()
    path = Path(run) / SAMPLES
    write_rows(path, COLUMNS, rows)
    return path


def case_rows(evaluation: Evaluation, case: dict[str, Any], counts: Sequence[int]) -> Iterator[dict[str, Any]]:
    """The case's scores from its first n samples, for each n of the rising `counts`."""
    structures = evaluation.predictor.structures
    for count, (prediction, seconds) in zip(counts, evaluation.predictor.running(case, counts), strict=True):
        label = evaluation.scoring.label_of(case, prediction)
        uncertainty = evaluation.scoring.uncertainty_scores(prediction, label)
        yield {
            "case": case["id"],
            "samples": count,
            DICE.name: float(np.mean([dice(prediction.segmentation == index, label == index) for index in structures])),
            PAVPU.name: uncertainty[PAVPU.name],
            ECE.name: uncertainty[ECE.name],
            CASE_SECONDS.name: seconds,
        }
    print(f"samples: {case['id']}  {seconds:.1f} s", flush=True)
