"""The scores of one predicted case against its label: its rows of per_case.csv."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import torch

from medssl.core.errors import DataError
from medssl.core.options import names_of, option
from medssl.data.pipeline import LabelMap
from medssl.data.volumes import read_volume
from medssl.inference.outputs import write_maps
from medssl.inference.predictor import Prediction
from medssl.metrics import ece, evaluate_masks, pavpu, uce
from medssl.metrics.catalogue import (
    ASD,
    ASD_VOXELS,
    ASSD,
    ASSD_VOXELS,
    CASE_SECONDS,
    DICE,
    ECE,
    ENTROPY_BITS,
    HD95,
    HD95_VOXELS,
    JACCARD,
    LABEL_ML,
    PAVPU,
    PREDICTED_ML,
    UCE,
)
from medssl.metrics.counted_region import REGIONS, body_region, near_structures
from medssl.metrics.surface import surface_measures


@dataclass(frozen=True)
class ScoringOptions:
    """How predictions of scans are compared with labels."""

    pavpu_region: str = option(
        "scan",
        "where PAvPU counts: in the whole scan, in the body, or near the structures of the label",
        choices=REGIONS,
    )
    pavpu_distance_mm: float = option(
        10.0, "pavpu_region structures: voxels at most this far from a structure count, in mm", at_least=0
    )
    voxel_distances: bool = option(
        False, "measure HD95, ASD and ASSD in voxels of the resized slices, too, the unit of the released code"
    )

    def settings(self) -> dict[str, Any]:
        """The options as an evaluation's settings.json has them."""
        return asdict(self)


def kept_scoring(output_dir: str | Path) -> dict[str, Any]:
    """How the evaluation in a folder, else the one of its run's test cases, was scored before; empty without any."""
    for folder in (Path(output_dir), Path(output_dir).parent / "evaluation"):
        file = folder / "settings.json"
        if file.is_file():
            stored = json.loads(file.read_text(encoding="utf-8"))
            return {name: stored[name] for name in names_of(ScoringOptions) if name in stored}
    return {}


@dataclass(frozen=True)
class CaseScoring:
    """Compares predictions with labels on the scans' own grid, structure by structure; can be sent to a process.

    PAvPU uses windows of `pavpu_window` voxels, not overlapping, and calls one certain below `pavpu_threshold_bits`.
    is_ct: scans are in Hounsfield units. grid: what scans are
    resized to for the network, axis by axis, None for not at all.
    """

    label_map: Mapping[int, int]
    structures: Mapping[int, str]
    pavpu_window: int
    pavpu_threshold_bits: float
    options: ScoringOptions = ScoringOptions()
    is_ct: bool = False
    grid: Sequence[int | None] = (None, None, None)

    def stored_rows(
        self, case: dict[str, Any], prediction: Prediction, seconds: float, folder: Path
    ) -> list[dict[str, Any]]:
        """The case's rows; its `_seg` and `_entropy` are written into `folder`."""
        write_maps(prediction, folder, with_probabilities=False)
        label = self.label_of(case, prediction)
        shared = {**self.uncertainty_scores(case, prediction, label), CASE_SECONDS.name: seconds}
        segmentation = prediction.segmentation
        rows = []
        for index, name in self.structures.items():
            masks = segmentation == index, label == index
            row = {"case": case["id"], "structure": name, **mask_scores(*masks, prediction.spacing_mm), **shared}
            if self.options.voxel_distances:
                row |= voxel_scores(*masks, voxel_lengths(prediction, self.grid))
            rows.append(row)
        return rows

    def label_of(self, case: dict[str, Any], prediction: Prediction) -> np.ndarray:
        """The case's label as classes, on the prediction's grid; DataError where its shape is another."""
        raw = read_volume(case["label"]).array
        if raw.shape != prediction.entropy.shape:
            raise DataError(f"{case['label']}: shape {raw.shape}, the scan has {prediction.entropy.shape}.")
        return LabelMap(self.label_map)(torch.as_tensor(raw.astype(np.int32))).numpy()

    def uncertainty_scores(self, case: dict[str, Any], prediction: Prediction, label: np.ndarray) -> dict[str, float]:
        """Mean entropy, PAvPU, UCE and ECE of a case; PAvPU is NaN where no voxel counts."""
        correct = prediction.segmentation == label
        entropy, window = prediction.entropy, self.pavpu_window
        certain_below, counted = self.pavpu_threshold_bits, self.counted_voxels(case, prediction, label)
        return {
            ENTROPY_BITS.name: float(entropy.mean()),
            PAVPU.name: pavpu(correct, entropy, window, uncertainty_threshold=certain_below, counted=counted),
            UCE.name: uce(entropy / np.log2(len(prediction.probs)), correct),
            ECE.name: ece(prediction.probs, label),
        }

    def counted_voxels(self, case: dict[str, Any], prediction: Prediction, label: np.ndarray) -> np.ndarray | None:
        """The voxels that PAvPU counts, the same whatever was predicted; None for all."""
        if self.options.pavpu_region == "body":
            return body_region(read_volume(case["image"]).array, self.is_ct)
        if self.options.pavpu_region == "structures":
            return near_structures(label, prediction.spacing_mm, self.options.pavpu_distance_mm)
        return None


def voxel_lengths(prediction: Prediction, grid: Sequence[int | None]) -> tuple[float, ...]:
    """How long a voxel of the scan is along each of its axes, in voxels of the network's grid.

    That grid has the axes from left to right, back to front and bottom to top; None: the axis is not resized.
    """
    directions = nib.orientations.io_orientation(prediction.affine)[:, 0].astype(int)
    shape = prediction.entropy.shape
    resized = [grid[direction] for direction in directions]
    return tuple(1.0 if size is None else size / length for size, length in zip(resized, shape, strict=True))


def voxel_scores(predicted: np.ndarray, label: np.ndarray, lengths: Sequence[float]) -> dict[str, float]:
    """Surface distances of one structure in voxels of the network's grid."""
    measured = surface_measures(predicted, label, lengths)
    return {HD95_VOXELS.name: measured.hd95, ASD_VOXELS.name: measured.asd, ASSD_VOXELS.name: measured.assd}


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
