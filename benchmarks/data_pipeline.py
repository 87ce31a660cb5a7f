"""One cached training sample: medssl's augmentation against the same one of MONAI's transforms.

    python benchmarks/run.py data_pipeline

Both cut 128x128x32 patches with labels from cached scans of 256x256x64 voxels; half of them are rotated.
"""

import math
from collections.abc import Callable, Iterator

import torch
from monai import transforms as mt
from timing import alternating_medians, one_thread
from torch import Tensor

from medssl.data import AugmentedDataset, Pipeline
from medssl.data.datasets import DATASETS
from medssl.data.rotation import rotated_in_plane
from medssl.data.sampling import Draw

SCAN, PATCH, DRAWS = (256, 256, 64), (128, 128, 32), 12
KEYS, MODES = ["image", "label"], ["bilinear", "nearest"]


def monai_augmentation(pipeline: Pipeline) -> mt.Compose:
    """The augmentation of the pipeline, put together from MONAI's own transforms."""
    radians = math.radians(pipeline.rotation_degrees)
    return mt.Compose(
        [
            mt.RandSpatialCropd(KEYS, pipeline.geometry.patch_size, random_size=False),
            mt.RandScaleIntensityFixedMeand("image", factors=pipeline.jitter, preserve_range=False, prob=1.0),
            mt.RandShiftIntensityd("image", offsets=pipeline.jitter / 2, prob=1.0),
            mt.RandRotated(KEYS, range_z=radians, prob=0.5, mode=MODES, padding_mode="border"),
            mt.RandFlipd(KEYS, spatial_axis=0, prob=pipeline.flip_probability),
            mt.EnsureTyped(KEYS, dtype=[torch.float32, torch.uint8], track_meta=False),
        ]
    )


def scan(size: tuple[int, ...]) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    label = torch.randint(0, 2, (1, *size), generator=generator, dtype=torch.uint8)
    return {"image": torch.randn(1, *size, generator=generator), "label": label}


def sides(size: tuple[int, ...], patch: tuple[int, ...]) -> list[AugmentedDataset]:
    """Ours and MONAI's samples of the same cached scan."""
    pipeline = Pipeline(DATASETS["phantom"], patch_size=patch)
    return [AugmentedDataset([scan(size)], made) for made in (pipeline.augmentation(), monai_augmentation(pipeline))]


def rotations(patch: tuple[int, ...], radians: float = 0.15) -> tuple[Callable[[], list[Tensor]], ...]:
    """Ours and MONAI's rotation of an image and its label."""
    data, stock = scan(patch), mt.Rotated(KEYS, (0.0, 0.0, radians), mode=MODES, padding_mode="border")
    return (
        lambda: [rotated_in_plane(data[key], radians, mode) for key, mode in zip(KEYS, MODES, strict=True)],
        lambda: [*map(stock(data).get, KEYS)],
    )


def measure(size: tuple[int, ...] = SCAN, patch: tuple[int, ...] = PATCH, repeats: int = 5) -> Iterator[tuple]:
    def draws(data: AugmentedDataset) -> Callable[[], object]:
        return lambda: [data[Draw(0, seed)] for seed in range(DRAWS)]

    with one_thread():
        ours, peer = alternating_medians(*map(draws, sides(size, patch)), repeats=repeats)
        turned, stock = alternating_medians(*rotations(patch), repeats=repeats)
    names = ["x".join(map(str, shape)) for shape in (size, patch)]
    yield f"one cached sample, {names[0]} to {names[1]}", "MONAI transforms", ours / DRAWS, peer / DRAWS, 5.0
    yield f"in-plane rotation, {names[1]}, image and label", "MONAI Rotated", turned, stock, 20.0
