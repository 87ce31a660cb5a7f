"""Cost against the number of samples T, the volume and the number of cases: linear or better.

    python benchmarks/run.py scaling

Each line has the CPU seconds and the slope of their logarithm against that of the size: 1 is linear.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch
from timing import alternating_medians, one_thread

from medssl.inference import MCDropoutInferer
from medssl.metrics import evaluate_masks
from medssl.networks import MCDropoutUNet3D

SAMPLES, DEPTHS, EDGES, CASES = (1, 5, 10, 20), (16, 32, 64, 128), (50, 100, 200), (1, 4, 16)
LINEAR = 1.05  # a slope up to this is called linear: times differ by a few percent from run to run


def sampling(samples: int, depth: int = 16) -> Callable[[], object]:
    """MC-dropout inference of one scan of 64x64xdepth voxels."""
    network = MCDropoutUNet3D(widths=(8, 16, 32)).eval()
    inferer = MCDropoutInferer((64, 64, 16), (64, 64, 16), samples=samples)
    scan = torch.randn(1, 1, 64, 64, depth, generator=torch.Generator().manual_seed(0))
    return lambda: inferer.statistics(scan, network)


def scoring(edge: int, cases: int = 1) -> Callable[[], object]:
    """Five measures of `cases` cases with a ball in edge^3 voxels."""
    grid = np.ogrid[tuple(slice(0, edge) for _ in range(3))]
    label, prediction = (sum((x - c * edge) ** 2 for x in grid) < (0.3 * edge) ** 2 for c in (0.5, 0.52))
    return lambda: [evaluate_masks(prediction, label, (1.0, 1.0, 1.0)) for _ in range(cases)]


def slope(seconds: Mapping[int, float]) -> float:
    """The exponent p of seconds = a size^p that fits best."""
    sizes, times = np.log(list(seconds)), np.log(list(seconds.values()))
    return float(np.polyfit(sizes, times, 1)[0])


def line(what: str, seconds: Mapping[int, float]) -> str:
    found = slope(seconds)
    costs = ", ".join(f"{size}: {value:.3g} s" for size, value in seconds.items())
    return f"- {what}: {costs}; slope {found:.2f}, {'linear or better' if found <= LINEAR else 'more than linear'}."


def notes(repeats: int = 3) -> Iterator[str]:
    series: dict[str, dict[int, Callable[[], object]]] = {
        "MC-dropout inference against T": {number: sampling(number) for number in SAMPLES},
        "MC-dropout inference against slices, T = 2": {depth: sampling(2, depth) for depth in DEPTHS},
        "five measures against voxels": {edge**3: scoring(edge) for edge in EDGES},
        "five measures against cases": {number: scoring(100, number) for number in CASES},
    }
    yield "\n## Scaling, one thread\n"
    with one_thread():
        for what, calls in series.items():
            yield line(what, dict(zip(calls, alternating_medians(*calls.values(), repeats=repeats), strict=True)))
