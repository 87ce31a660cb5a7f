"""Time, error and UCE of a trained classifier against the number of samples T."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from medssl.core.csv_files import write_rows
from medssl.core.distributed import local_device
from medssl.core.errors import ConfigError
from medssl.core.prediction_options import rising_counts
from medssl.core.progress import tracked, work
from medssl.core.run_files import SAMPLES
from medssl.metrics.catalogue import CASE_SECONDS, UCE, metric_names
from natural_image_ext.data.sources import Pictures
from natural_image_ext.data.splits import read_image_split
from natural_image_ext.inference.evaluation import measure
from natural_image_ext.inference.predictor import PicturePredictor, load_picture_predictor
from natural_image_ext.inference.sampling import SampledInferer
from natural_image_ext.metrics import ERROR

COLUMNS = ("samples", *metric_names((ERROR, UCE, CASE_SECONDS)))


def write_picture_curve(
    run: str | Path, values: Sequence[int], limit: int | None = None, *, trust: bool = False
) -> Path:
    """Write samples.csv into the folder of a finished run: a row for each number of samples.

    seconds: of the network alone, per picture. limit: only the first test pictures. Raises ConfigError.
    """
    counts = rising_counts(values)
    with work("opening the network"):
        predictor = load_picture_predictor(run, trust=trust, device=str(local_device()))
    test = read_image_split(Path(run) / "split.json").test
    test = test if limit is None else test.take(range(min(limit, len(test))))
    if not len(test):
        raise ConfigError(f"{run}: no test pictures to predict. Train with --test above 0, and give --cases above 0.")
    _timed(predictor, test.take([0]), 1)  # the first pass sets things up: no part of the time of a sample
    rows = []
    for count in tracked(counts, "samples", "numbers of samples"):
        probs, seconds = _timed(predictor, test, count)
        measured = measure(probs, torch.tensor(test.labels))
        rows.append(
            {
                "samples": count,
                ERROR.name: measured[ERROR.name],
                UCE.name: measured[UCE.name],
                CASE_SECONDS.name: seconds / len(test),
            }
        )
        print(f"samples: T = {count}  {seconds:.1f} s", flush=True)
    path = Path(run) / SAMPLES
    write_rows(path, COLUMNS, rows)
    return path


def _timed(predictor: PicturePredictor, pictures: Pictures, count: int) -> tuple[Tensor, float]:
    """Probabilities from `count` samples, and the seconds the network took for them; reading does not count."""
    inferer = _Timed(count)
    probs = replace(predictor, inferer=inferer, checkpoint=None)(pictures)
    return probs, inferer.seconds


class _Timed(SampledInferer):
    """An inferer and the seconds it took."""

    seconds = 0.0

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        started = time.perf_counter()
        probs = super().__call__(*args, **kwargs)
        self.seconds += time.perf_counter() - started
        return probs
