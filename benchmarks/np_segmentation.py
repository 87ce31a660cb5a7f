"""Uncertainty of a segmentation: NP-SemiSeg's factored decoder against the plain one, MC dropout, and a single pass.

    python benchmarks/run.py np_segmentation

DeepLabV3+ with ResNet-50, an image of 161x161 pixels, one thread. All sides pay for the encoder; Monte Carlo dropout
repeats the decoder alone, as the thesis does. The single pass has the plain head and no uncertainty.
"""

from collections.abc import Callable, Iterator

import torch
from peak import least_seconds
from timing import alternating_medians, one_thread
from torch import Tensor

from natural_image_ext.inference import SampledSceneInferer
from natural_image_ext.networks import NPSegHead, SegmentationNetwork, build_segmentation

CLASSES, SIZE = 21, 161
TARGETS = {("MC dropout", 20): 2.8, ("plain form", 20): 1.8, ("one deterministic pass", 5): 1 / 1.6}


class PlainHead(NPSegHead):
    """The same numbers without the shortcut: z and context as maps, joined with the features T times."""

    def decode(self, features: Tensor, z: Tensor, context: Tensor) -> Tensor:
        size = features.shape[2:]
        vectors = torch.cat([z, context.expand_as(z)], dim=-1)[..., None, None].expand(*z.shape[:2], -1, *size)
        maps = torch.cat([features.expand(len(z), *features.shape), vectors], dim=2)
        return self.decoder(self.first(maps.flatten(0, 1))).unflatten(0, z.shape[:2])


def predicting(network: SegmentationNetwork, images: Tensor, samples: int) -> Callable[[], Tensor]:
    return lambda: SampledSceneInferer(samples)(images, network)


def sides(encoder: str = "resnet50") -> dict[str, SegmentationNetwork]:
    """Networks of the same encoder and decoder: the factored head, the plain one, dropout, and no uncertainty."""
    ours = build_segmentation(encoder, CLASSES, "np").eval()
    plain_head = PlainHead(ours.channels, CLASSES).eval()
    plain_head.load_state_dict(ours.head.state_dict())
    return {
        "ours": ours,
        "plain form": SegmentationNetwork(ours.encoder, ours.decoder, plain_head, ours.channels).eval(),
        "MC dropout": build_segmentation(encoder, CLASSES, "dropout").eval(),
        "one deterministic pass": build_segmentation(encoder, CLASSES, "plain").eval(),
    }


def measure(
    values: tuple[int, ...] = (1, 5, 20), repeats: int = 3, encoder: str = "resnet50", size: int = SIZE
) -> Iterator[tuple]:
    images = torch.randn(1, 3, size, size, generator=torch.Generator().manual_seed(0))
    networks = sides(encoder)
    with one_thread():
        for samples in values:
            limit = least_seconds(predicting(networks["ours"], images, samples))
            calls = [predicting(network, images, samples) for network in networks.values()]
            ours, *others = alternating_medians(*calls, repeats=repeats)
            claim = f"uncertainty of DeepLabV3+ {encoder}, {size}x{size}, T = {samples}"
            for peer, seconds in zip(list(networks)[1:], others, strict=True):
                yield claim, peer, ours, seconds, TARGETS.get((peer, samples)), limit, "its products at FMA peak"
