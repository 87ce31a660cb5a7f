"""Scans slice by slice through a segmentation network of images: mean probabilities, entropy, mutual information."""

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from monai.inferers import Inferer
from torch import Tensor

from medssl.core.seeding import seeded
from medssl.inference.mc_dropout import MCStatistics, joined
from medssl.networks.mc_dropout import has_dropout, mc_dropout
from medssl.uncertainty import StreamingStatistics
from natural_image_ext.data.slices import slices_at
from natural_image_ext.networks.np_seg_head import NPSegHead
from natural_image_ext.networks.segmentation import SegmentationNetwork, upsampled


class SliceInferer(Inferer):
    """A scan (B, 1, H, W, D) and a `SegmentationNetwork` to statistics of `samples` predictions of every slice.

    `slice_batch` slices at a time pass the encoder, once. A neural-process head then decodes draws of its latents; with
    dropout the decoder takes a pass for each sample; a network without either has one prediction, and no mutual
    information. samples 0 is one prediction without chance. Called as a MONAI inferer it gives mean probabilities.
    """

    def __init__(self, samples: int = 5, slice_batch: int = 8) -> None:
        super().__init__()
        self.samples, self.slice_batch = samples, slice_batch

    def __call__(self, inputs: Tensor, network: SegmentationNetwork, *args: Any, **kwargs: Any) -> Tensor:  # type: ignore[override]
        return self.statistics(inputs, network).mean

    def prepare(self, network: SegmentationNetwork, models_dir: Path) -> None:
        """Nothing to get ready: the network itself computes."""

    def settings(self) -> dict[str, Any]:
        """What a prediction depends on besides the network and the scan."""
        return {"samples": self.samples, "slice_batch": self.slice_batch}

    def statistics(self, inputs: Tensor, network: SegmentationNetwork) -> MCStatistics:
        """Statistics over the samples: mean (B, C, H, W, D), entropy and mutual information (B, H, W, D) in bits."""
        (found,) = self.running_statistics(inputs, network, (max(1, self.samples),))
        return found

    @torch.inference_mode()
    def running_statistics(
        self, inputs: Tensor, network: SegmentationNetwork, counts: Sequence[int]
    ) -> list[MCStatistics]:
        """Statistics over the first n samples for each n of the rising `counts`, all from one series of samples.

        Each is what `statistics` gives with `samples` = n from the same random state.
        """
        seed = int(torch.randint(2**31, ()))
        with mc_dropout(network, enabled=self.samples > 0):
            scans = [self._of_scan(scan, network, counts, seed, number) for number, scan in enumerate(inputs)]
        return [joined(of_count, dim=0) for of_count in zip(*scans, strict=True)]

    def _of_scan(
        self, scan: Tensor, network: SegmentationNetwork, counts: Sequence[int], seed: int, number: int
    ) -> list[MCStatistics]:
        """The statistics of one scan (1, H, W, D); a batch of slices has chances of its own, however many samples."""
        batches = []
        for places in torch.arange(scan.shape[-1]).split(self.slice_batch):
            with seeded(seed, number, int(places[0])):
                batches.append(self._of_slices(slices_at(scan, places), network, counts))
        return [joined([_as_scan(found) for found in of_count], dim=-1) for of_count in zip(*batches, strict=True)]

    def _of_slices(self, images: Tensor, network: SegmentationNetwork, counts: Sequence[int]) -> list[MCStatistics]:
        streaming, found, started = StreamingStatistics(), [], time.perf_counter()
        draw = self._drawing(images, network)
        for before, count in pairwise((0, *counts)):
            for probs in draw(count - before):
                streaming.update(upsampled(probs, images.shape[2:]))
            if images.is_cuda:
                torch.cuda.synchronize(images.device)  # the clock must not run ahead of the device
            seconds = time.perf_counter() - started
            found.append(MCStatistics(streaming.mean, streaming.entropy, streaming.mutual_information, seconds))
        return found

    def _drawing(self, images: Tensor, network: SegmentationNetwork) -> Callable[[int], Iterable[Tensor]]:
        """From a number to as many probabilities (N, C, h, w) on the grid of the maps; to one where all are alike."""
        encoded = network.encoder(images)
        if isinstance(network.head, NPSegHead):
            features = network.decoder(encoded)
            return lambda number: network.head(features, number if self.samples else 0).logits.softmax(2)
        passes = None if has_dropout(network) else 1
        return lambda number: (network.head(network.decoder(encoded)).softmax(1) for _ in range(passes or number))


def _as_scan(found: MCStatistics) -> MCStatistics:
    """Statistics of N slices, (N, C, H, W) and (N, H, W), as those of one scan, (1, C, H, W, N) and (1, H, W, N)."""
    mean, entropy, information = (
        maps.movedim(0, -1).unsqueeze(0) for maps in (found.mean, found.entropy, found.mutual_information)
    )
    return MCStatistics(mean, entropy, information, found.seconds)
