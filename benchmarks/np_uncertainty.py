"""Time to an uncertainty: one pass with a neural-process head against T passes with MC dropout. Claim: 25x at T = 20.

    python benchmarks/run.py np_uncertainty

WRN-28-2 (10 classes) and WRN-28-8 (100 classes), batch 16 of 32x32 pixels, one thread. MC dropout has to repeat the
whole network since its dropout lies inside of the blocks; the neural process decodes T latent vectors of one pass.
"""

import statistics
import time
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from natural_image_ext.inference import SampledInferer
from natural_image_ext.networks import Classifier, NPHead, wrn_28_2, wrn_28_8

NETWORKS = {"WRN-28-2": (wrn_28_2, 10), "WRN-28-8": (wrn_28_8, 100)}
BATCH, SIZE, DROPOUT = 16, 32, 0.3


def cpu_seconds(network: Classifier, images: Tensor, samples: int) -> float:
    started = time.process_time()
    SampledInferer(samples)(images, network)
    return time.process_time() - started


def pair(name: str) -> tuple[Classifier, Classifier]:
    """The same backbone with the neural-process head, and with dropout and a linear classifier."""
    build, classes = NETWORKS[name]
    backbone, dropping = build(), build(DROPOUT)
    networks = (
        Classifier(backbone, NPHead(backbone.num_features, classes)),
        Classifier(dropping, nn.Linear(dropping.num_features, classes)),
    )
    return networks[0].eval(), networks[1].eval()


def measure(
    names: tuple[str, ...] = tuple(NETWORKS), values: tuple[int, ...] = (1, 5, 10, 20, 50), repeats: int = 3
) -> Iterator[tuple[str, str, float, float]]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        images = torch.randn(BATCH, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(0))
        for name in names:
            ours, peer = pair(name)
            cpu_seconds(ours, images, 1), cpu_seconds(peer, images, 1)  # warm up
            for samples in values:
                rounds = [[cpu_seconds(side, images, samples) for side in (ours, peer)] for _ in range(repeats)]
                ours_s, peer_s = (statistics.median(side) for side in zip(*rounds, strict=True))
                yield f"uncertainty of {name}, batch {BATCH}, T = {samples}", "MC dropout", ours_s, peer_s
    finally:
        torch.set_num_threads(threads)
