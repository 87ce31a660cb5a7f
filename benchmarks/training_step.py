"""Where the time of a training step goes, operation by operation; and how much of it is loading data.

    python benchmarks/run.py training_step            # bench size: widths 8 to 64, 64x64x16 patches, batch 2
    python benchmarks/run.py --full training_step     # and the thesis' 9.6 M network, 128x128x32, batch 2: minutes

The step is that of the trainer, with loader, loss, backward pass and optimiser.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from ignite.engine import Events
from timing import one_thread
from torch.profiler import ProfilerActivity, profile

from medssl.data import AugmentedDataset, Pipeline, make_loader
from medssl.data.datasets import DATASETS
from medssl.engine import MethodTrainer, place
from medssl.losses import DiceCE
from medssl.methods import Supervised
from medssl.networks import MCDropoutUNet3D

SHOWN_SHARE = 0.01
KINDS = {  # the first kind whose part is in an operation's name
    "optimiser": ("adam", "foreach"),
    "convolution, backward": ("convolution_backward", "conv3d_backward"),
    "convolution, forward": ("conv",),
    "instance norm": ("norm",),
    "upsampling": ("upsample",),
    "max-pooling": ("max_pool",),
    "dropout": ("dropout", "bernoulli"),
    "loss": ("softmax", "nll_loss", "cross_entropy", "one_hot", "scatter", "sum", "mean"),
    "ReLU": ("relu", "threshold", "clamp_min"),
    "copies": ("copy_", "cat", "clone", "zero_", "fill_", "empty"),
    "additions and products": ("add", "mul", "div", "sub"),
}


@dataclass(frozen=True)
class Size:
    """A network and its batches."""

    name: str
    widths: tuple[int, ...]
    patch: tuple[int, int, int]
    batch: int = 2
    channels_last: bool = False


BENCH = Size("bench", (8, 16, 32, 64), (64, 64, 16), channels_last=True)
FULL = Size("full", (32, 64, 96, 192, 384), (128, 128, 32))


@dataclass(frozen=True)
class StepCosts:
    """Wall seconds of a step and the part of them that waits for data; shares of the CPU time by kind of operation."""

    seconds: float
    data_seconds: float
    shares: dict[str, float]

    def line(self, name: str) -> str:
        kinds = ", ".join(f"{kind} {share:.0%}" for kind, share in self.shares.items() if share >= SHOWN_SHARE)
        return f"- {name} step {self.seconds:.2f} s, waiting for data {self.data_seconds / self.seconds:.1%}; {kinds}."


def make_trainer(size: Size, steps: int) -> MethodTrainer:
    """A trainer of one epoch of `steps` steps on two cached random scans, as the bundle mcdropout_unet3d builds it."""
    generator = torch.Generator().manual_seed(0)
    shape = (1, *(length + length // 2 for length in size.patch))
    scans = [
        {
            "image": torch.randn(shape, generator=generator),
            "label": torch.randint(0, 2, shape, generator=generator, dtype=torch.uint8),
            "id": str(number),
        }
        for number in range(2)
    ]
    augmentation = Pipeline(DATASETS["phantom"], patch_size=size.patch).augmentation()
    loader = make_loader(AugmentedDataset(scans, augmentation), size.batch, steps)
    network = place(MCDropoutUNet3D(widths=size.widths), "cpu", size.channels_last)
    method = Supervised(network, DiceCE())
    return MethodTrainer(method, torch.optim.Adam(method.parameters(), lr=1e-4, fused=True), loader, 1, "cpu")


def costs(size: Size, steps: int) -> StepCosts:
    """Costs of a step, the mean of `steps` after one that warms up."""
    trainer, waited, started = make_trainer(size, steps + 1), [], [0.0]

    def begin() -> None:
        started[0] = time.perf_counter()

    trainer.add_event_handler(Events.GET_BATCH_STARTED, begin)
    trainer.add_event_handler(Events.GET_BATCH_COMPLETED, lambda: waited.append(time.perf_counter() - started[0]))
    recorder, ended = profile(activities=[ProfilerActivity.CPU]), []

    def end() -> None:
        ended.append(time.perf_counter())
        if len(ended) == 1:
            recorder.start()

    trainer.add_event_handler(Events.ITERATION_COMPLETED, end)
    trainer.run()
    recorder.stop()
    return StepCosts(
        (ended[-1] - ended[0]) / steps, sum(waited[1 : steps + 1]) / steps, shares_by_kind(recorder.key_averages())
    )


def shares_by_kind(averages: Any) -> dict[str, float]:
    """Share of the CPU time of each kind of operation, the largest first; what no kind names is "other"."""
    seconds: dict[str, float] = {}
    for entry in averages:
        kind = kind_of(entry.key)
        seconds[kind] = seconds.get(kind, 0.0) + entry.self_cpu_time_total
    total = sum(seconds.values())
    return {kind: value / total for kind, value in sorted(seconds.items(), key=lambda item: -item[1])}


def kind_of(operation: str) -> str:
    """The kind of an operation by its name in the profile, e.g. aten::mkldnn_convolution."""
    name = operation.lower()
    return next((kind for kind, parts in KINDS.items() if any(part in name for part in parts)), "other")


def notes(full: bool = False, steps: int = 10) -> Iterator[str]:
    yield "\n## A training step, one thread\n"
    with one_thread():
        yield costs(BENCH, steps).line("bench")
        if full:
            yield costs(FULL, 1).line("full-size")
