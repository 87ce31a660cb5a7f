"""Time to an uncertainty: one pass with a neural-process head against T passes with MC dropout. Claim: 25x at T = 20.

    python benchmarks/run.py np_uncertainty            # with --full also WRN-28-8 (100 classes), T = 50

WRN-28-2 (10 classes), batch 16 of 32x32 pixels, one thread. MC dropout has to repeat the whole network since its
dropout lies inside of the blocks; the neural process decodes T latent vectors of one pass. That pass, with a linear
classifier and without any uncertainty, is the other peer.
"""

from collections.abc import Callable, Iterator

import torch
from peak import least_seconds
from timing import alternating_medians, one_thread
from torch import Tensor

from natural_image_ext.inference import SampledInferer
from natural_image_ext.networks import Classifier, LinearHead, NPHead, wrn_28_2, wrn_28_8

NETWORKS = {"WRN-28-2": (wrn_28_2, 10), "WRN-28-8": (wrn_28_8, 100)}
BATCH, SIZE, DROPOUT = 16, 32, 0.3
MOST_OF_ONE_PASS = 1.15  # what T = 20 may cost


def predicting(network: Classifier, images: Tensor, samples: int) -> Callable[[], Tensor]:
    return lambda: SampledInferer(samples)(images, network)


def networks(name: str) -> tuple[Classifier, Classifier, Classifier]:
    """The same backbone with the neural-process head, with dropout and a linear classifier, with the latter alone."""
    build, classes = NETWORKS[name]
    backbone, dropping = build(), build(DROPOUT)
    found = (
        Classifier(backbone, NPHead(backbone.num_features, classes)),
        Classifier(dropping, LinearHead(dropping.num_features, classes)),
        Classifier(backbone, LinearHead(backbone.num_features, classes)),
    )
    return found[0].eval(), found[1].eval(), found[2].eval()


def measure(full: bool = False, repeats: int = 3) -> Iterator[tuple]:
    names, values = (tuple(NETWORKS), (1, 20, 50)) if full else (("WRN-28-2",), (1, 20))
    images = torch.randn(BATCH, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(0))
    with one_thread():
        for name in names:
            ours, dropping, plain = networks(name)
            limit = least_seconds(predicting(plain, images, 1))
            for samples in values:
                calls = [predicting(side, images, samples) for side in (ours, dropping, plain)]
                ours_s, dropping_s, plain_s = alternating_medians(*calls, repeats=repeats)
                claim = f"uncertainty of {name}, batch {BATCH}, T = {samples}"
                target = 25.0 if samples == 20 else None
                yield claim, "MC dropout", ours_s, dropping_s, target, limit, "one pass at FMA peak"
                target = 1 / MOST_OF_ONE_PASS if samples == 20 else None
                yield claim, "one deterministic pass", ours_s, plain_s, target, limit, "one pass at FMA peak"
