"""Evaluation of a trained network on cases with labels: every case is stored, means come later."""

import csv
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ignite.distributed as idist
import numpy as np
import torch

from medssl.data.pipeline import LabelMap
from medssl.data.volumes import read_volume
from medssl.errors import DataError, MedsslError
from medssl.files import write_atomically, write_text_atomically
from medssl.inference.outputs import write_maps
from medssl.inference.predictor import Prediction, Predictor
from medssl.metrics import ece, evaluate_masks, pavpu, uce

COLUMNS = (
    "case", "structure", "dice", "jaccard", "hd95_mm", "asd_mm", "assd_mm", "empty", "label_ml", "predicted_ml",
    "mean_entropy_bits", "pavpu", "uce", "ece", "seconds",
)  # fmt: skip


@dataclass
class Evaluation:
    """Predicts `cases`, compares with their labels on the scans' own grid and writes `output_dir`/per_case.csv.

    Beside it: settings.json and predictions/ (`_seg` and `_entropy` of each case). PAvPU uses windows of
    `pavpu_window` voxels, not overlapping, and calls one certain below `pavpu_threshold_bits`.
    """

    predictor: Predictor
    cases: Sequence[dict[str, Any]]
    output_dir: str | Path
    pavpu_window: int = 4
    pavpu_threshold_bits: float = 0.4

    def run(self) -> list[dict[str, Any]]:
        """The rows of per_case.csv; the first process of a group does the work."""
        if idist.get_rank() != 0:
            return []
        folder = Path(self.output_dir)
        if not self.cases:
            print("evaluation: the split has no cases to evaluate", flush=True)
            return []
        rows = [row for case in self.cases for row in self._evaluate(case, folder / "predictions")]
        require_consistent_overlaps(rows)
        write_rows(folder / "per_case.csv", COLUMNS, rows)
        write_text_atomically(folder / "settings.json", json.dumps(self._all_settings(), indent=1))
        return rows

    def _all_settings(self) -> dict[str, Any]:
        return {
            **self.predictor.settings(),
            "pavpu_window": self.pavpu_window,
            "pavpu_threshold_bits": self.pavpu_threshold_bits,
            "n_cases": len(self.cases),
            "roles": sorted({case.get("role", "") for case in self.cases}),
        }

    def _evaluate(self, case: dict[str, Any], folder: Path) -> Iterator[dict[str, Any]]:
        started = time.perf_counter()
        prediction = self.predictor(case)
        seconds = time.perf_counter() - started
        write_maps(prediction, folder, with_probabilities=False)
        label = self.label_of(case, prediction)
        shared = {**self.uncertainty_scores(prediction, label), "seconds": seconds}
        for index, name in self.predictor.structures.items():
            scores = _scores(prediction.segmentation == index, label == index, prediction.spacing_mm)
            yield {"case": case["id"], "structure": name, **scores, **shared}
        print(f"evaluation: {case['id']}  {seconds:.1f} s", flush=True)

    def label_of(self, case: dict[str, Any], prediction: Prediction) -> np.ndarray:
        """The case's label as classes, on the prediction's grid; DataError where its shape is another."""
        raw = read_volume(case["label"]).array
        if raw.shape != prediction.entropy.shape:
            raise DataError(f"{case['label']}: shape {raw.shape}, the scan has {prediction.entropy.shape}.")
        label_map = LabelMap(self.predictor.pipeline.facts.target.label_map)
        return label_map(torch.as_tensor(raw.astype(np.int32))).numpy()

    def uncertainty_scores(self, prediction: Prediction, label: np.ndarray) -> dict[str, float]:
        """Mean entropy, PAvPU, UCE and ECE of a case."""
        correct = prediction.segmentation == label
        entropy, window = prediction.entropy, self.pavpu_window
        certain_below = self.pavpu_threshold_bits
        return {
            "mean_entropy_bits": float(entropy.mean()),
            "pavpu": pavpu(correct, entropy, window, uncertainty_threshold=certain_below),
            "uce": uce(entropy / np.log2(len(prediction.probs)), correct),
            "ece": ece(prediction.probs, label),
        }


def _scores(predicted: np.ndarray, label: np.ndarray, spacing_mm: Sequence[float]) -> dict[str, Any]:
    found = evaluate_masks(predicted, label, spacing_mm)
    voxel_ml = float(np.prod(spacing_mm)) / 1000
    sides = {(True, True): "", (False, True): "prediction", (True, False): "label", (False, False): "both"}
    return {
        "dice": found["dice"],
        "jaccard": found["jaccard"],
        "hd95_mm": found["hd95"],
        "asd_mm": found["asd"],
        "assd_mm": found["assd"],
        "empty": sides[bool(predicted.any()), bool(label.any())],
        "label_ml": float(label.sum()) * voxel_ml,
        "predicted_ml": float(predicted.sum()) * voxel_ml,
    }


def evaluation_folder(run: str | Path, role: str = "test") -> str:
    """Where a run's evaluation lies: `evaluation` for the test cases, `evaluation_<role>` for others."""
    return str(Path(run) / ("evaluation" if role == "test" else f"evaluation_{role}"))


def require_consistent_overlaps(rows: Sequence[dict[str, Any]]) -> None:
    """Raise MedsslError unless mean Jaccard >= D / (2 - D) for the mean Dice D, as it must be (Jensen)."""
    if not rows:
        raise MedsslError("no case was evaluated: the split has no test cases. Give --test a number above 0.")
    dice = float(np.mean([row["dice"] for row in rows]))
    jaccard = float(np.mean([row["jaccard"] for row in rows]))
    if jaccard < dice / (2 - dice) - 1e-9:
        raise MedsslError(f"mean Dice {dice} and Jaccard {jaccard} contradict each other: the metrics are wrong.")


def write_rows(path: Path, columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
    """Write the rows as CSV, all of them or none; numbers get six decimals."""

    def write(partial: Path) -> None:
        with partial.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            for row in rows:
                writer.writerow({k: f"{v:.6f}" if isinstance(v, float) else v for k, v in row.items()})

    write_atomically(path, write)
