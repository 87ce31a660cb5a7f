"""Small scans with predictions: as a run leaves them, and as `medssl predict` does."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from medssl.data.volumes import content_digest, write_nifti
from medssl.inference.outputs import StoredPrediction, describe, write_record

SHAPE, AFFINE = (24, 20, 16), np.diag([2.0, 2.0, 4.0, 1.0])
STRUCTURES = {1: "kidney", 2: "tumour"}


def small_case(bits: float = 0.5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scan, segmentation (a kidney of 6 x 6 x 6 voxels, a tumour of 3 x 3 x 3) and entropy: `bits` around the kidney's
    first four slices."""
    segmentation, entropy = np.zeros((2, *SHAPE), np.float32)
    segmentation[4:10, 6:12, 5:11] = 1
    segmentation[14:17, 6:9, 6:9] = 2
    entropy[3:11, 5:13, 5:9] = bits
    scan = 100 * (segmentation > 0) + np.random.default_rng(0).normal(0, 10, SHAPE)
    return scan, segmentation, entropy


def write_case(scans: Path, predictions: Path, case: str, bits: float = 0.5, record: bool = False) -> str:
    """Write scan and maps of a case, with its record where asked for; returns the scan's path."""
    scan, segmentation, entropy = small_case(bits)
    address = scans / f"{case}.nii.gz"
    write_nifti(address, scan, AFFINE, np.float32)
    write_nifti(predictions / f"{case}_seg.nii.gz", segmentation, AFFINE, np.uint8)
    write_nifti(predictions / f"{case}_entropy.nii.gz", entropy, AFFINE, np.float32)
    if record:
        nothing = np.empty(0)
        maps = StoredPrediction(case, nothing, entropy, nothing, AFFINE, segmentation.astype(np.uint8))
        known = {**describe(maps, STRUCTURES), "made_by": {"scan": content_digest(address)}}
        write_record(predictions, case, known)
    return str(address)


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Path]:
    """make(needs) -> folder of a run that predicted these cases, each with this entropy around its kidney."""

    def make(needs: Mapping[str, float], **facts: object) -> Path:
        folder = tmp_path / "run"
        images = {
            case: write_case(tmp_path / "scans", folder / "evaluation" / "predictions", case, bits)
            for case, bits in needs.items()
        }
        known = {"name": "small run", "method": "gbdl", "dataset": "phantom", "labelled": 4, "seed": 0}
        known |= {"status": "finished", "structures": STRUCTURES, "window": [-20, 120], **facts}
        (folder / "run.json").write_text(json.dumps(known))
        cases = [{"id": case, "image": image, "role": "test"} for case, image in images.items()]
        (folder / "split.json").write_text(json.dumps({"cases": cases}))
        return folder

    return make


@pytest.fixture
def make_predictions(tmp_path: Path) -> Callable[..., tuple[Path, Path]]:
    """make(needs) -> folders of scans and of what `medssl predict` made of them."""

    def make(needs: Mapping[str, float]) -> tuple[Path, Path]:
        scans, predictions = tmp_path / "scans", tmp_path / "predictions"
        for case, bits in needs.items():
            write_case(scans, predictions, case, bits, record=True)
        return scans, predictions

    return make
