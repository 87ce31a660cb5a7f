"""How many GPU hours the trainings of an entry take: counted operations, at the speed of a step that was timed."""

import time
from dataclasses import dataclass
from typing import Any

from medssl.data.sampling import thesis_steps_per_epoch
from medssl.thesis.contents import Setting, Thesis
from medssl.thesis.plan import Plan

SCAN_BATCH = 4
PICTURE_STEPS = 2**20
HOUR_SECONDS = 3600.0
SCAN_STEPS = ("unet", "gbdl", "teacher_student")


@dataclass(frozen=True)
class Speed:
    """teraflops: operations a second in a training step. origin: where that is from, in a sentence."""

    teraflops: float
    origin: str


def stored_speed(thesis: Thesis) -> Speed:
    """That of the GPU named in thesis.json: its nominal peak times the share of its peak that a timed CPU step has."""
    costs = thesis.costs
    return Speed(costs["gpu_teraflops"] * _share_of_peak(costs["timed_step"]), costs["origin"])


def timed_speed(thesis: Thesis) -> Speed:
    """That of this machine: a forward and a backward pass of the thesis' 3D-UNet on one 128x128x32 patch, timed."""
    import torch  # noqa: PLC0415  (the costs that are stored need none of this)

    from medssl.core.distributed import local_device  # noqa: PLC0415
    from medssl.networks import MCDropoutUNet3D  # noqa: PLC0415

    device = local_device()
    network = MCDropoutUNet3D(in_channels=1, out_channels=2, widths=(32, 64, 96, 192, 384), dropout=0.3).to(device)
    patch = torch.randn(1, 1, 128, 128, 32, device=device)
    repeats = 1 if device.type == "cpu" else 6
    seconds = min(_seconds_of_step(network, patch) for _ in range(repeats))
    teraflop = thesis.costs["teraflop_per_step"]["unet"]["any"] / SCAN_BATCH
    origin = f"a step of the 3D-UNet on one patch took {seconds:.2f} s on {device} here; others by their operations."
    return Speed(teraflop / seconds, origin)


def gpu_hours(thesis: Thesis, plan: Plan, speed: Speed) -> float:
    """Hours of training of all runs that the plan has, each once; evaluation is not in it."""
    teraflop = 0.0
    counted = set()
    for cell in plan.cells:
        if cell.method is None or cell.place is None or not cell.is_registered:
            continue
        run = (cell.method.name, cell.place.title)
        if run not in counted:
            counted.add(run)
            what = (thesis, cell.setting, cell.method.step)
            teraflop += _steps(*what) * _teraflop_per_step(*what)
    return len(plan.seeds) * teraflop / speed.teraflops / HOUR_SECONDS


def _seconds_of_step(network: Any, patch: Any) -> float:
    import torch  # noqa: PLC0415

    started = time.perf_counter()
    network(patch).float().square().mean().backward()
    if patch.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - started


def _share_of_peak(step: dict[str, float]) -> float:
    return step["teraflop"] / step["seconds"] / step["peak_teraflops"]


def _steps(thesis: Thesis, setting: Setting, step: str) -> int:
    """Steps of one training at full size."""
    dataset = thesis.datasets[setting.dataset]
    if step == "pictures":
        return PICTURE_STEPS
    if step in SCAN_STEPS:
        unlabelled = int(setting.unlabelled)
        return (dataset.epochs or 0) * thesis_steps_per_epoch(int(setting.labelled), unlabelled, SCAN_BATCH)
    batch = thesis.costs["scene_batch"][setting.dataset]
    return (dataset.epochs or 0) * -(-int(setting.unlabelled) // batch)


def _teraflop_per_step(thesis: Thesis, setting: Setting, step: str) -> float:
    by_dataset = thesis.costs["teraflop_per_step"][step]
    return float(by_dataset.get(setting.dataset, by_dataset.get("any", 0.0)))
