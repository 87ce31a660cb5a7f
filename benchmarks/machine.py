"""The machine and the versions that a table was measured with."""

import datetime
import os
import platform
from importlib.metadata import version
from pathlib import Path

import torch
from peak import fma_peak_gflops
from timing import alternating_medians

PACKAGES = ("torch", "numpy", "scipy", "monai")


def describe_machine() -> str:
    """Two lines: processor, threads, load and date; versions and the peak of one core."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    peak = fma_peak_gflops()
    speed = "" if peak is None else f"; one core does {peak:.0f} GFLOP/s (fma_peak.c), {sgemm_gflops():.0f} in sgemm"
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return (
        f"{processor()}, {len(os.sched_getaffinity(0))} cores, {torch.get_num_threads()} thread(s), load {load} at the "
        f"start, {datetime.datetime.now(datetime.UTC):%Y-%m-%d}{speed}.\n"
        f"Python {platform.python_version()}, {versions}."
    )


def processor() -> str:
    """The processor's name where Linux tells it, else its kind."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def sgemm_gflops(size: int = 1024) -> float:
    """What torch's matrix product of float32 reaches with its threads as they are."""
    matrix = torch.randn(size, size)
    (seconds,) = alternating_medians(lambda: matrix @ matrix)
    return 2e-9 * size**3 / seconds
