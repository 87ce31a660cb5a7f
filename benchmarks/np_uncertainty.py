"""Time to an uncertainty: one pass with a neural-process head against T passes with MC dropout. Claim: 25x at T = 20.

    python benchmarks/run.py np_uncertainty

WRN-28-2 (10 classes) and WRN-28-8 (100 classes), batch 16 of 32x32 pixels, one thread. MC dropout has to repeat the
whole network since its dropout lies inside of the blocks; the neural process decodes T latent vectors of one pass.
"""

import statistics
import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from medssl.networks.mc_dropout import mc_dropout
from natural_image_ext.methods.step import Classifier, mean_prediction
from natural_image_ext.networks import NPHead, wrn_28_2, wrn_28_8

NETWORKS = {"WRN-28-2": (wrn_28_2, 10), "WRN-28-8": (wrn_28_8, 100)}
BATCH, SIZE, DROPOUT = 16, 32, 0.3


@torch.no_grad()
def neural_process(network: Classifier, images: Tensor, samples: int) -> Tensor:
    """Mean probabilities of `samples` latent vectors."""
    head: NPHead = network.head  # type: ignore[assignment]
    return mean_prediction(head(network.backbone(images), samples).logits)


@torch.no_grad()
def monte_carlo_dropout(network: Classifier, images: Tensor, samples: int) -> Tensor:
    """Mean probabilities of `samples` passes with dropout."""
    with mc_dropout(network):
        return mean_prediction(torch.stack([network(images) for _ in range(samples)]))


def cpu_seconds(predict: Callable[[Classifier, Tensor, int], Tensor], *args: object) -> float:
    started = time.process_time()
    predict(*args)  # type: ignore[arg-type]
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
            neural_process(ours, images, 1), monte_carlo_dropout(peer, images, 1)  # warm up
            for samples in values:
                rounds = [
                    (
                        cpu_seconds(neural_process, ours, images, samples),
                        cpu_seconds(monte_carlo_dropout, peer, images, samples),
                    )
                    for _ in range(repeats)
                ]
                ours_s, peer_s = (statistics.median(side) for side in zip(*rounds, strict=True))
                yield f"uncertainty of {name}, batch {BATCH}, T = {samples}", "MC dropout", ours_s, peer_s
    finally:
        torch.set_num_threads(threads)
