"""Generated abdominal scans with kidney labels, for demonstrations and tests without any data.

    python -c "from medssl.data.phantom import write_phantoms; write_phantoms('phantoms')"

Each scan is drawn from the seed and its own number alone, so that a set can be made larger without changing its cases.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from medssl.core.errors import ConfigError, DataError
from medssl.core.files import write_text_atomically
from medssl.data.phantom.anatomy import draw_abdomen
from medssl.data.phantom.appearance import ct_scan, mr_scan
from medssl.data.phantom.kidneys import kidney_label
from medssl.data.volumes import write_nifti

# Raised whenever the same seed gives other scans, so that an older set is not taken for a present one.
GENERATOR_VERSION = 1
SCANNERS = {"ct": ct_scan, "mr": mr_scan}
SMALLEST_SHAPE = (24, 24, 8)


class Phantom(NamedTuple):
    """One generated scan: image (X, Y, Z), label map (0 background, 1 kidney, 2 lesion in it) and their affine."""

    image: NDArray[Any]
    label: NDArray[np.uint8]
    affine: NDArray[np.float64]


def write_phantoms(
    root: str | Path, count: int = 40, seed: int = 0, modality: str = "ct", shape: Sequence[int] = (64, 64, 24)
) -> list[str]:
    """Write `count` scans and labels below `root` and return their ids; a set that is already there is kept.

    Files: `images/<id>.nii.gz` (int16 Hounsfield values, or uint16 for "mr"), `labels/<id>.nii.gz` (uint8) and
    `phantom.json`, which is written last and so marks a complete set. Raises DataError where `root` holds another set
    or other scans, ConfigError for arguments outside their range.
    """
    root = Path(root)
    _check_arguments(count, seed, modality, shape)
    facts = {"count": count, "seed": seed, "modality": modality, "shape": list(shape), "version": GENERATOR_VERSION}
    names = [f"phantom_{index:03d}" for index in range(count)]
    complete = _is_complete_set(root, facts)
    if not complete:
        _refuse_other_scans(root, names)
    for index, name in enumerate(names):
        paths = [root / folder / f"{name}.nii.gz" for folder in ("images", "labels")]
        if complete and all(path.is_file() for path in paths):
            continue
        image, label, affine = draw_phantom(index, seed, modality, shape)
        write_nifti(paths[0], image, affine, image.dtype)
        write_nifti(paths[1], label, affine, label.dtype)
    if not complete:
        write_text_atomically(root / "phantom.json", json.dumps(facts) + "\n")
    return names


def draw_phantom(index: int, seed: int = 0, modality: str = "ct", shape: Sequence[int] = (64, 64, 24)) -> Phantom:
    """Scan number `index` of a seed. CT and MR of the same number show the same anatomy."""
    anatomy, appearance = (np.random.default_rng(part) for part in np.random.SeedSequence((seed, index)).spawn(2))
    affine = _draw_affine(anatomy, shape)
    fractions = draw_abdomen(anatomy, shape, np.abs(np.diag(affine)[:3]).tolist())
    return Phantom(SCANNERS[modality](fractions, appearance), kidney_label(fractions), affine)


def _draw_affine(rng: np.random.Generator, shape: Sequence[int]) -> NDArray[np.float64]:
    """RAS affine of an axial scan stored to the left, the back and upwards, as DICOM series are.

    The field of view does not depend on `shape`: 64 x 64 x 24 voxels are of 2.8 to 3.4 mm in slices of 4 to 6 mm.
    """
    in_plane_mm, slice_mm = rng.uniform(180, 218) / shape[0], rng.uniform(96, 144) / shape[2]
    steps = np.round([-in_plane_mm, -in_plane_mm * shape[0] / shape[1], slice_mm], 3)
    affine = np.diag([*steps, 1.0])
    affine[:3, 3] = np.round(-steps * np.array(shape) / 2 + rng.uniform([-15, -15, -700], [15, 15, -200]), 2)
    return affine


def _check_arguments(count: int, seed: int, modality: str, shape: Sequence[int]) -> None:
    if modality not in SCANNERS:
        raise ConfigError(f"phantom: modality '{modality}', expected one of {', '.join(SCANNERS)}.")
    if count < 1 or seed < 0:
        raise ConfigError(f"phantom: count {count} and seed {seed}, expected a count from 1 and a seed from 0.")
    if len(shape) != 3 or any(size < least for size, least in zip(shape, SMALLEST_SHAPE, strict=True)):
        raise ConfigError(f"phantom: shape {tuple(shape)}, expected three sizes of at least {SMALLEST_SHAPE} voxels.")


def _is_complete_set(root: Path, facts: dict[str, Any]) -> bool:
    """Whether `root` holds the set these facts describe; DataError where it holds another one."""
    marker = root / "phantom.json"
    if not marker.is_file():
        return False
    try:
        stored = json.loads(marker.read_text())
    except ValueError as error:
        raise DataError(f"{marker}: not JSON ({error}). Delete the folder, or choose another one.") from error
    if stored != facts:
        raise DataError(
            f"{marker}: holds the set {stored}, expected {facts}. Delete the folder, choose another one, or ask for "
            "the set that is there."
        )
    return True


def _refuse_other_scans(root: Path, names: Iterable[str]) -> None:
    """DataError where the folders to be written hold files that are not of this set, such as a user's own scans."""
    expected = {f"{name}.nii.gz" for name in names}
    for folder in (root / "images", root / "labels"):
        present = sorted(path.name for path in folder.glob("[!.]*"))
        if not expected.issuperset(present):
            stranger = next(name for name in present if name not in expected)
            raise DataError(f"{folder / stranger}: not of this phantom set. Choose an empty folder for the phantoms.")
