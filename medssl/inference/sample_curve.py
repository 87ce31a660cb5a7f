"""Time, Dice and PAvPU against the number T of Monte Carlo samples (thesis, section 3.4): RUN/samples.csv."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from medssl.core.csv_files import write_rows
from medssl.core.distributed import local_device
from medssl.core.errors import ConfigError
from medssl.core.prediction_options import rising_counts
from medssl.core.progress import work
from medssl.core.run_files import SAMPLES
from medssl.core.run_folder import read_facts
from medssl.core.seeding import seeded
from medssl.data.split import read_split, require_scans
from medssl.inference.evaluation import Evaluation, evaluation_folder
from medssl.inference.predictor import Predictor, load_predictor, parse_bundle
from medssl.metrics import dice
from medssl.metrics.catalogue import CASE_SECONDS, DICE, ECE, PAVPU, metric_names

PATCH_SECONDS, MODE = "patch_seconds", "mode"
COLUMNS = ("case", "samples", *metric_names((DICE, PAVPU, ECE, CASE_SECONDS)), PATCH_SECONDS, MODE)
DEFAULT_MODE = "exact"
REPEATS = 3


def write_sample_curve(
    run: str | Path,
    values: Sequence[int],
    limit: int | None = None,
    *,
    mode: str | None = None,
    trust: bool = False,
) -> Path:
    """Write samples.csv into the folder of a finished run: a row for each test case and number of samples.

    A case is sampled once, max(values) times, and scored after each of `values`; `seconds` is the time of the sampling
    up to there, `patch_seconds` that of a volume of the patch's size (128x128x32 in the thesis) with so many samples.
    Dice is the mean over the structures. limit: only the first cases. mode: of sampling; None for `exact`, in which T
    samples are T passes over every window; in `fast` overlapping windows are samples, too, and T changes little. A
    network of slices has no modes. trust: as in `load_predictor`. Raises ConfigError.
    """
    counts = rising_counts(values)
    facts = read_facts(run)
    settings = {"samples": counts[-1], "device": str(local_device()), "paper_crop": facts["paper_crop"]}
    with work("opening the network"):
        if mode is None and MODE in parse_bundle(run, trust=trust):
            mode = DEFAULT_MODE
        predictor = load_predictor(run, trust=trust, mode=mode, **settings)
    cases = read_split(Path(run) / "split.json").role("test")[:limit]
    if not cases:
        raise ConfigError(f"{run}: no test cases to predict. Train with --test above 0, and give --cases above 0.")
    require_scans(Path(run) / "split.json", cases)
    evaluation = Evaluation(predictor, cases, evaluation_folder(run))
    rows: list[dict[str, Any]] = []
    with work("samples", len(cases), "cases") as progress:
        next(predictor.running(cases[0], (1,)))  # the first pass sets things up: no part of the time of a sample
        shared = [{PATCH_SECONDS: patch_seconds(predictor, count), MODE: mode or ""} for count in counts]
        for case in cases:
            scored = case_rows(evaluation, case, counts)
            rows += [row | of_count for row, of_count in zip(scored, shared, strict=True)]
            progress.advance()
    path = Path(run) / SAMPLES
    write_rows(path, COLUMNS, rows)
    return path


def patch_seconds(predictor: Predictor, samples: int) -> float:
    """Seconds of so many samples of a volume of the patch's size: the median of a few repeats."""
    patch = torch.zeros(1, 1, *predictor.pipeline.geometry.patch_size, device=predictor.device)
    measured = []
    for _ in range(REPEATS):
        with seeded(predictor.seed, "patch"):
            (statistics,) = predictor.inferer.running_statistics(patch, predictor.network, (samples,))
        measured.append(statistics.seconds)
    return float(np.median(measured))


def case_rows(evaluation: Evaluation, case: dict[str, Any], counts: Sequence[int]) -> Iterator[dict[str, Any]]:
    """The case's scores from its first n samples, for each n of the rising `counts`."""
    structures = evaluation.predictor.structures
    for count, (prediction, seconds) in zip(counts, evaluation.predictor.running(case, counts), strict=True):
        label = evaluation.scoring.label_of(case, prediction)
        uncertainty = evaluation.scoring.uncertainty_scores(case, prediction, label)
        yield {
            "case": case["id"],
            "samples": count,
            DICE.name: float(np.mean([dice(prediction.segmentation == index, label == index) for index in structures])),
            PAVPU.name: uncertainty[PAVPU.name],
            ECE.name: uncertainty[ECE.name],
            CASE_SECONDS.name: seconds,
        }
    print(f"samples: {case['id']}  {seconds:.1f} s", flush=True)
