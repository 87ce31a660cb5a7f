"""Left-atrium scans as small whole volumes: a data set on which a grid of trainings fits into a night on a CPU.

    python benchmarks/pooled_left_atrium.py data/left_atrium data/left_atrium_pooled

Voxels are averaged in blocks of 5 x 5 x 4 (about 3 mm), the label is what most of them are, and all is cut or padded
about its middle to 48 x 32 x 24. The result is a folder that `--dataset_name folder` reads.
"""

import argparse
from pathlib import Path

import h5py
import nibabel as nib
import numpy as np

BLOCK, SIZE, VOXEL_MM = (5, 5, 4), (48, 32, 24), 0.625


def pooled(volume: np.ndarray, block: tuple[int, ...] = BLOCK) -> np.ndarray:
    """The mean of each block; voxels at the end that fill none are left out."""
    counts = [length // side for length, side in zip(volume.shape, block, strict=True)]
    whole = volume[tuple(slice(0, count * side) for count, side in zip(counts, block, strict=True))]
    parts = whole.reshape([number for pair in zip(counts, block, strict=True) for number in pair])
    return parts.mean(axis=(1, 3, 5), dtype=np.float64)


def fitted(volume: np.ndarray, fill: float, size: tuple[int, ...] = SIZE) -> np.ndarray:
    """The volume cut or padded about its middle."""
    fitting = np.full(size, fill, dtype=volume.dtype)
    taken, placed = [], []
    for length, wanted in zip(volume.shape, size, strict=True):
        common = min(length, wanted)
        taken.append(slice((length - common) // 2, (length - common) // 2 + common))
        placed.append(slice((wanted - common) // 2, (wanted - common) // 2 + common))
    fitting[tuple(placed)] = volume[tuple(taken)]
    return fitting


def write_case(file: Path, output: Path) -> None:
    """Write image and label of one scan, named after its folder."""
    with h5py.File(file) as stored:
        image, label = stored["image"][:], stored["label"][:]
    small = pooled(image)
    image, label = fitted(small, float(small.min())), fitted((pooled(label > 0) > 0.5).astype(np.uint8), 0)
    affine = np.diag([side * VOXEL_MM for side in BLOCK] + [1.0])
    nib.save(nib.Nifti1Image(image.astype(np.float32), affine), output / "images" / f"{file.parent.name}.nii.gz")
    nib.save(nib.Nifti1Image(label, affine), output / "labels" / f"{file.parent.name}.nii.gz")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="folder of the left-atrium set")
    parser.add_argument("output", type=Path, help="folder for images/ and labels/")
    arguments = parser.parse_args()
    files = sorted(arguments.source.rglob("mri_norm2.h5"))
    if not files:
        parser.error(f"{arguments.source}: no mri_norm2.h5 in it or below.")
    for name in ("images", "labels"):
        (arguments.output / name).mkdir(parents=True, exist_ok=True)
    for number, file in enumerate(files, 1):
        write_case(file, arguments.output)
        print(f"{number} of {len(files)}: {file.parent.name}", flush=True)


if __name__ == "__main__":
    main()
