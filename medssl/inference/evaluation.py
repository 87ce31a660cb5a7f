"""Evaluation of a trained network on cases with labels: every case is stored, means come later."""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import ignite.distributed as idist
import numpy as np

from medssl.core.csv_files import write_rows
from medssl.core.errors import MedsslError
from medssl.core.files import write_text_atomically
from medssl.core.options import make_options, names_of
from medssl.core.progress import work
from medssl.inference.predictor import Prediction, Predictor
from medssl.inference.scoring import CaseScoring, ScoringOptions, kept_scoring
from medssl.inference.workers import in_processes, paying_workers
from medssl.metrics.catalogue import (
    CASE_SECONDS,
    DICE,
    ECE,
    ENTROPY_BITS,
    JACCARD,
    LABEL_ML,
    LATENT_SHARE,
    PAVPU,
    PREDICTED_ML,
    STRUCTURE_METRICS,
    UCE,
    VOXEL_METRICS,
    metric_names,
)
from medssl.uncertainty.latent_share import LatentShare

COLUMNS = (
    "case",
    "structure",
    *metric_names(STRUCTURE_METRICS),
    "empty",
    *metric_names((LABEL_ML, PREDICTED_ML, ENTROPY_BITS, PAVPU, UCE, ECE, CASE_SECONDS)),
)


@dataclass
class Evaluation:
    """Predicts `cases`, compares with their labels on the scans' own grid and writes `output_dir`/per_case.csv.

    Beside it: settings.json, predictions/ (`_seg` and `_entropy` of each case) and, of a network that draws latents,
    metrics.json with their `latent_share`. pavpu_window and pavpu_threshold_bits are those of `CaseScoring`; the last
    three are those of `ScoringOptions`, None for what the evaluation before in this folder, or of the run's test cases,
    had. Cases are scored and written in `metric_workers` processes while the next is predicted: 0 for none, None for as
    many as pay. The rows are the same.
    """

    predictor: Predictor
    cases: Sequence[dict[str, Any]]
    output_dir: str | Path
    pavpu_window: int = 4
    pavpu_threshold_bits: float = 0.4
    metric_workers: int | None = 0
    pavpu_region: str | None = None
    pavpu_distance_mm: float | None = None
    voxel_distances: bool | str | None = None

    @cached_property
    def options(self) -> ScoringOptions:
        """How cases are scored; ConfigError for what `ScoringOptions` refuse."""
        asked = {name: getattr(self, name) for name in names_of(ScoringOptions)}
        given = {name: value for name, value in asked.items() if value is not None}
        return make_options(ScoringOptions, {**kept_scoring(self.output_dir), **given})

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of per_case.csv."""
        return COLUMNS + (metric_names(VOXEL_METRICS) if self.options.voxel_distances else ())

    @property
    def scoring(self) -> CaseScoring:
        pipeline = self.predictor.pipeline
        return CaseScoring(
            pipeline.facts.target.label_map,
            self.predictor.structures,
            self.pavpu_window,
            self.pavpu_threshold_bits,
            self.options,
            is_ct=pipeline.facts.window is not None,
            grid=(*(pipeline.geometry.slice_size or (None, None)), pipeline.geometry.depth),
        )

    def run(self) -> list[dict[str, Any]]:
        """The rows of per_case.csv; the first process of a group does the work."""
        if idist.get_rank() != 0:
            return []
        folder = Path(self.output_dir)
        if not self.cases:
            print("evaluation: the split has no cases to evaluate", flush=True)
            return []
        workers = paying_workers(len(self.cases)) if self.metric_workers is None else self.metric_workers
        rows: list[dict[str, Any]] = []
        latent = LatentShare()
        predicted = self._predicted(folder / "predictions", latent)
        with work("evaluation", len(self.cases), "cases") as progress:
            for case_rows in in_processes(self.scoring.stored_rows, predicted, workers):
                rows += case_rows
                progress.advance()
        write_rows(folder / "per_case.csv", self.columns, rows)
        write_text_atomically(folder / "settings.json", json.dumps(self._all_settings(), indent=1))
        self._write_latent_share(folder / "metrics.json", latent)
        require_consistent_overlaps(rows)  # last: what took hours is stored, whatever comes of it
        return rows

    def _all_settings(self) -> dict[str, Any]:
        return {
            **self.predictor.settings(),
            "pavpu_window": self.pavpu_window,
            "pavpu_threshold_bits": self.pavpu_threshold_bits,
            **self.options.settings(),
            "n_cases": len(self.cases),
            "roles": sorted({case.get("role", "") for case in self.cases}),
        }

    def _write_latent_share(self, file: Path, latent: LatentShare) -> None:
        """What the latent of a neural process does, if the network has one; no file of an evaluation before this."""
        file.unlink(missing_ok=True)
        if self.predictor.measures_latent:
            write_text_atomically(file, json.dumps({LATENT_SHARE.name: latent.value}, indent=1))

    def _predicted(self, folder: Path, latent: LatentShare) -> Iterator[tuple[dict[str, Any], Prediction, float, Path]]:
        """The arguments of `CaseScoring.stored_rows`, case by case; what the latent does goes to `latent`."""
        for case in self.cases:
            started = time.perf_counter()
            prediction = self.predictor(case)
            seconds = time.perf_counter() - started
            print(f"evaluation: {case['id']}  {seconds:.1f} s", flush=True)
            latent.add(prediction.mutual_information, prediction.entropy)
            yield case, prediction, seconds, folder


def evaluation_folder(run: str | Path, role: str = "test") -> str:
    """Where a run's evaluation lies: `evaluation` for the test cases, `evaluation_<role>` for others."""
    return str(Path(run) / ("evaluation" if role == "test" else f"evaluation_{role}"))


def require_consistent_overlaps(rows: Sequence[dict[str, Any]]) -> None:
    """Raise MedsslError unless mean Jaccard >= D / (2 - D) for the mean Dice D, as it must be (Jensen)."""
    if not rows:
        raise MedsslError("no case was evaluated: the split has no test cases. Give --test a number above 0.")
    dice = float(np.mean([row[DICE.name] for row in rows]))
    jaccard = float(np.mean([row[JACCARD.name] for row in rows]))
    if jaccard < dice / (2 - dice) - 1e-9:
        raise MedsslError(
            f"mean Dice {dice} and Jaccard {jaccard} contradict each other: the metrics are wrong. Do not use the "
            "scores that were written; report this, with per_case.csv."
        )
