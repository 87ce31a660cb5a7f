"""A prediction as files: NIfTI maps on the scan's grid and a small JSON record that marks the case as finished."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from medssl.core.files import write_text_atomically, written_together
from medssl.data.volumes import read_volume, write_nifti
from medssl.inference.dicom_outputs import dicom_paths
from medssl.inference.predictor import Prediction
from medssl.uncertainty.ranking import entropy_around, slice_needs, structure_surroundings, surroundings

UNCERTAIN_SLICES = 5
MAP_NAMES = ("seg", "entropy", "prob")


def map_paths(folder: Path, case_id: str, with_probabilities: bool = True) -> list[Path]:
    """Where write_maps puts a case's maps."""
    names = MAP_NAMES if with_probabilities else MAP_NAMES[:2]
    return [folder / f"{case_id}_{name}.nii.gz" for name in names]


def write_maps(prediction: Prediction, folder: Path, with_probabilities: bool = True) -> None:
    """Write `<id>_seg`, `<id>_entropy` (bits) and, if asked for, `<id>_prob` (foreground classes) as .nii.gz.

    All of them or none; MedsslError where the disk is full.
    """
    with written_together(folder, prediction.case_id) as staging:
        write_map_files(prediction, staging, with_probabilities)


def write_map_files(prediction: Prediction, folder: Path, with_probabilities: bool = True) -> None:
    """Write the files of write_maps one after the other, for a caller that puts them in their place."""
    maps: list[tuple[np.ndarray, type]] = [(prediction.segmentation, np.uint8), (prediction.entropy, np.float32)]
    if with_probabilities:
        foreground = prediction.probs[1:]
        maps.append((foreground[0] if len(foreground) == 1 else np.moveaxis(foreground, 0, -1), np.float32))
    for path, (array, dtype) in zip(map_paths(folder, prediction.case_id, with_probabilities), maps, strict=True):
        write_nifti(path, array, prediction.affine, dtype)


@dataclass(frozen=True)
class StoredPrediction(Prediction):
    """A prediction read back from `_seg` and `_entropy`; its other maps are empty."""

    stored: np.ndarray

    @property
    def segmentation(self) -> np.ndarray:
        return self.stored


def read_maps(folder: Path, case_id: str, classes: int) -> StoredPrediction:
    """What write_maps wrote of a case whose network has that many classes; DataError where a map cannot be read."""
    segmentation, entropy = (read_volume(path) for path in map_paths(folder, case_id, with_probabilities=False))
    no_probabilities, nothing = np.empty((classes, 0, 0, 0), np.float32), np.empty((0, 0, 0), np.float32)
    classes_of_voxels = segmentation.array.astype(np.uint8)
    return StoredPrediction(
        case_id, no_probabilities, entropy.array, nothing, segmentation.affine, stored=classes_of_voxels
    )


def describe(prediction: Prediction, structures: dict[int, str]) -> dict[str, Any]:
    """What is worth knowing of a prediction in numbers.

    Per structure its class, its volume in ml, the mean entropy in bits inside of it and in its surroundings; the mean
    of the latter (`score`: how much the scan needs a human); the most uncertain slices; the scan's mean entropy.
    """
    segmentation, entropy, spacing_mm = prediction.segmentation, prediction.entropy, prediction.spacing_mm
    voxel_ml = float(np.prod(spacing_mm)) / 1000
    near = structure_surroundings(segmentation, spacing_mm, structures)
    around = {name: entropy_around(mask, entropy) for name, mask in near.items()}
    described = {}
    for index, name in structures.items():
        inside = segmentation == index
        described[name] = {
            "class": index,
            "volume_ml": round(float(inside.sum()) * voxel_ml, 4),
            "mean_entropy_bits": round(float(entropy[inside].mean()) if inside.any() else 0.0, 6),
            "surroundings_entropy_bits": round(around[name], 6),
        }
    # near one of them, or near a class that is not named
    others = surroundings((segmentation > 0) & ~np.isin(segmentation, list(structures)), spacing_mm)
    any_near = np.logical_or.reduce([others, *near.values()])
    needs = slice_needs(segmentation, entropy, spacing_mm, near=any_near)[:UNCERTAIN_SLICES]
    return {
        "id": prediction.case_id,
        "score": round(float(np.mean(list(around.values()))), 6),
        "mean_entropy_bits": round(float(entropy.mean()), 6),
        "structures": described,
        "uncertain_slices": [
            {"axis": need.axis, "index": need.index, "entropy_bits": round(need.entropy_bits, 4)} for need in needs
        ],
    }


def write_record(folder: Path, case_id: str, record: dict[str, Any]) -> None:
    """Write the case's record, last of its files: where it stands, the maps are whole."""
    write_text_atomically(folder / f"{case_id}.json", json.dumps(record, indent=1, sort_keys=True))


def read_record(folder: Path, case_id: str) -> dict[str, Any] | None:
    """The record of a finished case, None if there is none."""
    path = folder / f"{case_id}.json"
    return json.loads(path.read_text()) if path.is_file() else None


def discard(folder: Path, case_id: str) -> None:
    """Remove the record and all outputs of an earlier prediction: none of them may stand beside those of another."""
    for path in (folder / f"{case_id}.json", *map_paths(folder, case_id), *dicom_paths(folder, case_id)):
        path.unlink(missing_ok=True)
