"""All five measures of one 300x300x100 case: medssl against MONAI's three metrics and, if installed, medpy.

    python benchmarks/run.py surface_metrics

A prediction near its label is the usual case; one that is far too large or lies elsewhere is the hard one.
"""

import importlib.util
from collections.abc import Iterator

import numpy as np
import torch
from monai.metrics import DiceMetric, HausdorffDistanceMetric, SurfaceDistanceMetric
from timing import alternating_medians, cpu_seconds

from medssl.metrics import evaluate_masks

SHAPE, SPACING_MM = (300, 300, 100), (0.8, 0.8, 2.5)
MEDPY_TARGET, MONAI_TARGET = 30.0, 5.0


def ellipsoid(shape: tuple[int, ...], centre: tuple[float, ...], radii: tuple[float, ...]) -> np.ndarray:
    """A mask; centre and radii as shares of the shape."""
    grid = np.ogrid[tuple(slice(0, size) for size in shape)]
    parts = zip(grid, centre, radii, shape, strict=True)
    return sum(((x / size - c) / r) ** 2 for x, c, r, size in parts) < 1


def pairs(shape: tuple[int, ...] = SHAPE) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Prediction and label of each kind of case."""
    label = ellipsoid(shape, (0.5, 0.5, 0.5), (0.2, 0.15, 0.3))
    return {
        "near": (ellipsoid(shape, (0.51, 0.493, 0.51), (0.193, 0.157, 0.29)), label),
        "far too large": (ellipsoid(shape, (0.5, 0.5, 0.5), (0.48, 0.47, 0.48)), label),
        "elsewhere": (
            ellipsoid(shape, (0.83, 0.83, 0.7), (0.13, 0.13, 0.25)),
            ellipsoid(shape, (0.17, 0.17, 0.3), (0.13, 0.13, 0.25)),
        ),
    }


def monai_trio(prediction: np.ndarray, label: np.ndarray) -> dict[str, float]:
    """Dice, HD95 as MONAI defines it, ASSD."""
    one_hot = [torch.from_numpy(np.stack([~mask, mask])[None].astype(np.float32)) for mask in (prediction, label)]
    return {
        "dice": float(DiceMetric(include_background=False)(*one_hot)),
        "monai_hd95": float(HausdorffDistanceMetric(percentile=95)(*one_hot, spacing=SPACING_MM)),
        "assd": float(SurfaceDistanceMetric(symmetric=True)(*one_hot, spacing=SPACING_MM)),
    }


def medpy_five(prediction: np.ndarray, label: np.ndarray) -> dict[str, float]:
    from medpy.metric import binary  # noqa: PLC0415  (optional peer)

    overlaps = {"dice": binary.dc(prediction, label), "jaccard": binary.jc(prediction, label)}
    distances = {name: getattr(binary, name)(prediction, label, SPACING_MM) for name in ("hd95", "asd", "assd")}
    return {name: float(value) for name, value in (overlaps | distances).items()}


def measure(shape: tuple[int, ...] = SHAPE, repeats: int = 3) -> Iterator[tuple]:
    size = "x".join(str(length) for length in shape)
    for kind, (prediction, label) in pairs(shape).items():
        ours, monai = alternating_medians(
            lambda p=prediction, y=label: evaluate_masks(p, y, SPACING_MM),
            lambda p=prediction, y=label: monai_trio(p, y),
            repeats=repeats,
        )
        claim = f"five measures, {size}, prediction {kind}"
        yield claim, "MONAI trio", ours, monai, MONAI_TARGET
        if importlib.util.find_spec("medpy"):
            medpy = cpu_seconds(lambda p=prediction, y=label: medpy_five(p, y))  # once: it takes seconds
            yield claim, "medpy", ours, medpy, MEDPY_TARGET
