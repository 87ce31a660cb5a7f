"""All five measures of one 300x300x100 case: medssl against MONAI's three metrics and, if installed, medpy."""

import importlib.util
import time
from collections.abc import Callable, Iterator

import numpy as np
import torch
from monai.metrics import DiceMetric, HausdorffDistanceMetric, SurfaceDistanceMetric

from medssl.metrics import evaluate_masks

SHAPE, SPACING_MM = (300, 300, 100), (0.8, 0.8, 2.5)


def ellipsoid(centre: tuple[float, ...], radii: tuple[float, ...]) -> np.ndarray:
    grid = np.ogrid[tuple(slice(0, size) for size in SHAPE)]
    return sum(((x - c) / r) ** 2 for x, c, r in zip(grid, centre, radii, strict=True)) < 1


def cpu_seconds(call: Callable[[], object]) -> float:
    started = time.process_time()
    call()
    return time.process_time() - started


def measure() -> Iterator[tuple[str, str, float, float]]:
    label, prediction = ellipsoid((150, 150, 50), (60, 45, 30)), ellipsoid((153, 148, 51), (58, 47, 29))
    ours = cpu_seconds(lambda: evaluate_masks(prediction, label, SPACING_MM))

    def monai_trio() -> None:
        one_hot = [torch.from_numpy(np.stack([~m, m])[None].astype(np.float32)) for m in (prediction, label)]
        DiceMetric(include_background=False)(*one_hot)
        HausdorffDistanceMetric(percentile=95)(*one_hot, spacing=SPACING_MM)
        SurfaceDistanceMetric(symmetric=True)(*one_hot, spacing=SPACING_MM)

    yield "five measures, 300x300x100", "MONAI trio", ours, cpu_seconds(monai_trio)
    if importlib.util.find_spec("medpy"):
        from medpy.metric import binary  # noqa: PLC0415  (optional peer)

        def medpy_five() -> None:
            for function in (binary.dc, binary.jc):
                function(prediction, label)
            for function in (binary.hd95, binary.asd, binary.assd):
                function(prediction, label, SPACING_MM)

        yield "five measures, 300x300x100", "medpy", ours, cpu_seconds(medpy_five)
