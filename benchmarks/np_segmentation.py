"""Uncertainty of a segmentation at T = 20: NP-SemiSeg's factored decoder against the plain one and MC dropout.

DeepLabV3+ with ResNet-50, an image of 161x161 pixels, one thread. All sides pay for the encoder; Monte Carlo dropout
repeats the decoder alone, as the thesis does.
"""

import statistics
import time
from collections.abc import Iterator

import torch
from torch import Tensor

from natural_image_ext.inference import SampledSceneInferer
from natural_image_ext.networks import NPSegHead, SegmentationNetwork, build_segmentation

CLASSES, SIZE = 21, 161


class PlainHead(NPSegHead):
    """The same numbers without the shortcut: z and context as maps, joined with the features T times."""

    def decode(self, features: Tensor, z: Tensor, context: Tensor) -> Tensor:
        size = features.shape[2:]
        vectors = torch.cat([z, context.expand_as(z)], dim=-1)[..., None, None].expand(*z.shape[:2], -1, *size)
        maps = torch.cat([features.expand(len(z), *features.shape), vectors], dim=2)
        return self.decoder(self.first(maps.flatten(0, 1))).unflatten(0, z.shape[:2])


def cpu_seconds(network: SegmentationNetwork, images: Tensor, samples: int) -> float:
    started = time.process_time()
    SampledSceneInferer(samples)(images, network)
    return time.process_time() - started


def sides(encoder: str = "resnet50") -> dict[str, SegmentationNetwork]:
    """Networks with the same encoder and decoder: the factored head, the plain one, and dropout."""
    ours = build_segmentation(encoder, CLASSES, "np").eval()
    plain_head = PlainHead(ours.channels, CLASSES).eval()
    plain_head.load_state_dict(ours.head.state_dict())
    plain = SegmentationNetwork(ours.encoder, ours.decoder, plain_head, ours.channels).eval()
    return {"ours": ours, "plain form": plain, "MC dropout": build_segmentation(encoder, CLASSES, "dropout").eval()}


def measure(values: tuple[int, ...] = (1, 5, 20), repeats: int = 3) -> Iterator[tuple[str, str, float, float]]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        images = torch.randn(1, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(0))
        networks = sides()
        for network in networks.values():
            cpu_seconds(network, images, 1)  # warm up
        for samples in values:
            rounds = [[cpu_seconds(network, images, samples) for network in networks.values()] for _ in range(repeats)]
            ours, *others = (statistics.median(side) for side in zip(*rounds, strict=True))
            for peer, seconds in zip(list(networks)[1:], others, strict=True):
                yield f"uncertainty of DeepLabV3+ ResNet-50, {SIZE}x{SIZE}, T = {samples}", peer, ours, seconds
    finally:
        torch.set_num_threads(threads)
