"""Scans slice by slice through a network of images: mean probabilities, entropy, mutual information."""

import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from monai.inferers import Inferer
from torch import Tensor
from torch.nn import functional as F

from medssl.core.options import make_options
from medssl.core.prediction_options import SliceOptions
from medssl.core.progress import work
from medssl.core.seeding import seeded
from medssl.data.slices import slices_at
from medssl.inference.mc_dropout import MCStatistics, joined
from medssl.networks.mc_dropout import mc_dropout
from medssl.networks.sampled import SampledNetwork
from medssl.uncertainty import StreamingStatistics


class SliceInferer(Inferer):
    """A scan (B, 1, H, W, D) and a network of images to statistics of `samples` predictions of every slice.

    `slice_batch` slices at a time are given to the network, once. How it then draws its predictions is its own affair
    (`SampledNetwork.sampler`): of latents, of passes with dropout; one that has neither gives one prediction, and no
    mutual information. samples 0 is one prediction without chance. Called as a MONAI inferer it gives mean
    probabilities.
    """

    def __init__(self, samples: int = 5, slice_batch: int = 8) -> None:
        super().__init__()
        asked = make_options(SliceOptions, {"samples": samples, "slice_batch": slice_batch})
        self.samples, self.slice_batch = asked.samples, asked.slice_batch

    def __call__(self, inputs: Tensor, network: SampledNetwork, *args: Any, **kwargs: Any) -> Tensor:  # type: ignore[override]
        return self.statistics(inputs, network).mean

    def prepare(self, network: SampledNetwork, models_dir: Path) -> None:
        """Nothing to get ready: the network itself computes."""

    def working_bytes(self, network: SampledNetwork, channels: int) -> float:
        """Nothing beside the maps: a few slices take little against a scan."""
        return 0.0

    def require_network(self, network: SampledNetwork) -> None:
        """Nothing to ask for: a network without chance gives one prediction, however many are wanted."""

    def bundle_settings(self) -> dict[str, Any]:
        """The keys of an exported bundle's inference.json that make an inferer like this one."""
        return self.settings()

    def settings(self) -> dict[str, Any]:
        """What a prediction depends on besides the network and the scan."""
        return {"samples": self.samples, "slice_batch": self.slice_batch}

    def statistics(self, inputs: Tensor, network: SampledNetwork) -> MCStatistics:
        """Statistics over the samples: mean (B, C, H, W, D), entropy and mutual information (B, H, W, D) in bits."""
        (statistics,) = self.running_statistics(inputs, network, (max(1, self.samples),))
        return statistics

    @torch.inference_mode()
    def running_statistics(self, inputs: Tensor, network: SampledNetwork, counts: Sequence[int]) -> list[MCStatistics]:
        """Statistics over the first n samples for each n of the rising `counts`, all from one series of samples.

        Each is what `statistics` gives with `samples` = n from the same random state.
        """
        seed = int(torch.randint(2**31, ()))
        with mc_dropout(network, enabled=self.samples > 0):
            scans = [self._scan_statistics(scan, network, counts, seed, number) for number, scan in enumerate(inputs)]
        return [joined(of_count, dim=0) for of_count in zip(*scans, strict=True)]

    def _scan_statistics(
        self, scan: Tensor, network: SampledNetwork, counts: Sequence[int], seed: int, number: int
    ) -> list[MCStatistics]:
        """The statistics of one scan (1, H, W, D); a batch of slices has chances of its own, however many samples."""
        batches = []
        depth = scan.shape[-1]
        with work("sampling", depth, "slices") as progress:
            for places in torch.arange(depth).split(self.slice_batch):
                with seeded(seed, number, int(places[0])):
                    batches.append(self._slice_statistics(slices_at(scan, places), network, counts))
                progress.advance(len(places))
        return [joined([_as_scan(slices) for slices in of_count], dim=-1) for of_count in zip(*batches, strict=True)]

    def _slice_statistics(self, images: Tensor, network: SampledNetwork, counts: Sequence[int]) -> list[MCStatistics]:
        """The statistics of slices (N, 3, H, W) for each of the counts."""
        streaming, statistics, started = StreamingStatistics(), [], time.perf_counter()
        draw = network.sampler(images)
        for before, count in pairwise((0, *counts)):
            for group in draw(count - before if self.samples else 0):
                for probs in group:
                    streaming.update(_upsampled(probs, images))
            if images.is_cuda:
                torch.cuda.synchronize(images.device)  # the clock must not run ahead of the device
            seconds = time.perf_counter() - started
            statistics.append(MCStatistics(streaming.mean, streaming.entropy, streaming.mutual_information, seconds))
        return statistics


def _upsampled(probs: Tensor, images: Tensor) -> Tensor:
    """Probabilities (N, C, h, w) on the finer grid of the images, linearly."""
    return F.interpolate(probs, images.shape[2:], mode="bilinear", align_corners=True)


def _as_scan(slices: MCStatistics) -> MCStatistics:
    """Statistics of N slices, (N, C, H, W) and (N, H, W), as those of one scan, (1, C, H, W, N) and (1, H, W, N)."""
    mean, entropy, information = (
        maps.movedim(0, -1).unsqueeze(0) for maps in (slices.mean, slices.entropy, slices.mutual_information)
    )
    return MCStatistics(mean, entropy, information, slices.seconds)
