"""The scores of one predicted case against its label: its rows of per_case.csv."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from medssl.core.errors import DataError
from medssl.data.pipeline import LabelMap
from medssl.data.volumes import read_volume
from medssl.inference.outputs import write_maps
from medssl.inference.predictor import Prediction
from medssl.metrics import ece, evaluate_masks, pavpu, uce
from medssl.metrics.catalogue import (
    ASD,
    ASSD,
    CASE_SECONDS,
    DICE,
    ECE,
    ENTROPY_BITS,
    HD95,
    JACCARD,
    LABEL_ML,
    PAVPU,
    PREDICTED_ML,
    UCE,
)


@dataclass(frozen=True)
class CaseScoring:
    """Compares predictions with labels on the scans' own grid, structure by structure; can be sent to a process.

    PAvPU uses windows of `pavpu_window` voxels, not overlapping, and calls one certain below `pavpu_threshold_bits`.
    """

    label_map: Mapping[int, int]
    structures: Mapping[int, str]
    pavpu_window: int
    pavpu_threshold_bits: float

    def stored_rows(
        self, case: dict[str, Any], prediction: Prediction, seconds: float, folder: Path
    ) -> list[dict[str, Any]]:
        """The case's rows; its `_seg` and `_entropy` are written into `folder`."""
        write_maps(prediction, folder, with_probabilities=False)
        label = self.label_of(case, prediction)
        shared = {**self.uncertainty_scores(prediction, label), CASE_SECONDS.name: seconds}
        segmentation = prediction.segmentation
        return [
            {"case": case["id"], "structure": name}
            | mask_scores(segmentation == index, label == index, prediction.spacing_mm)
            | shared
            for index, name in self.structures.items()
        ]

    def label_of(self, case: dict[str, Any], prediction: Prediction) -> np.ndarray:
        """The case's label as classes, on the prediction's grid; DataError where its shape is another."""
        raw = read_volume(case["label"]).array
        if raw.shape != prediction.entropy.shape:
            raise DataError(f"{case['label']}: shape {raw.shape}, the scan has {prediction.entropy.shape}.")
        return LabelMap(self.label_map)(torch.as_tensor(raw.astype(np.int32))).numpy()

    def uncertainty_scores(self, prediction: Prediction, label: np.ndarray) -> dict[str, float]:
        """Mean entropy, PAvPU, UCE and ECE of a case."""
        correct = prediction.segmentation == label
        entropy, window = prediction.entropy, self.pavpu_window
        certain_below = self.pavpu_threshold_bits
        return {
            ENTROPY_BITS.name: float(entropy.mean()),
            PAVPU.name: pavpu(correct, entropy, window, uncertainty_threshold=certain_below),
            UCE.name: uce(entropy / np.log2(len(prediction.probs)), correct),
            ECE.name: ece(prediction.probs, label),
        }


def mask_scores(predicted: np.ndarray, label: np.ndarray, spacing_mm: Sequence[float]) -> dict[str, Any]:
    """Overlap, surface distances in mm and volumes in ml of one structure; `empty` names the side without any."""
    measured = evaluate_masks(predicted, label, spacing_mm)
    voxel_ml = float(np.prod(spacing_mm)) / 1000
    sides = {(True, True): "", (False, True): "prediction", (True, False): "label", (False, False): "both"}
    return {
        DICE.name: measured["dice"],
        JACCARD.name: measured["jaccard"],
        HD95.name: measured["hd95"],
        ASD.name: measured["asd"],
        ASSD.name: measured["assd"],
        "empty": sides[bool(predicted.any()), bool(label.any())],
        LABEL_ML.name: float(label.sum()) * voxel_ml,
        PREDICTED_ML.name: float(predicted.sum()) * voxel_ml,
    }
