"""Sliding-window inference with MC dropout: mean probabilities, entropy, mutual information."""

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from monai.inferers import Inferer
from torch import Tensor, nn
from torch.nn import functional as F

from medssl.core.errors import MedsslError
from medssl.core.options import make_options
from medssl.core.prediction_options import AUTO, SamplingOptions
from medssl.core.progress import work
from medssl.inference.backends import Backend, open_backend, require_network_for
from medssl.inference.backends.int8 import Int8Backend
from medssl.inference.memory_need import windows_bytes
from medssl.inference.passes import Pass, Passes
from medssl.inference.window_batch import windows_at_a_time
from medssl.inference.windows import Box, Plan, box, grid_plan, overlap_plan
from medssl.networks.mc_dropout import has_dropout, mc_dropout, require_dropout
from medssl.networks.weights import weights_digest
from medssl.uncertainty.streaming import StreamingStatistics

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class MCStatistics:
    """What the samples say, on the network's grid: mean (B, C, ...); entropies (B, ...) in bits.

    seconds: how long the sampling took, without the statistics.
    """

    mean: Tensor
    entropy: Tensor
    mutual_information: Tensor
    seconds: float


class MCDropoutInferer(Inferer):
    """Monte Carlo passes over overlapping windows, summed as they come: memory does not grow with their number.

    Every pass over a voxel is a sample of it; the windows over it count alike. Three modes with the same outputs:
    `reference`, the thesis' protocol: `samples` passes at every window, the windows one `stride` apart;
    `exact`, the same passes with their work shared: the encoder runs once a window, dropped channels are not computed;
    `fast`, as `exact` at the same windows with fewer passes each: overlapping windows are samples of what they share.
    Every voxel gets at least `samples` of them and a mean as certain as that of `samples` passes of one window.
    A network without `encode` and `decode_kept` (any but MCDropoutUNet3D) makes whole passes in every mode, with the
    same windows and samples. Dropout layers of every kind sample, see `medssl.networks.mc_dropout`.

    window and stride are (height, width, depth) in voxels; the thesis uses 128x128x32 and 8x8x8 with 20 samples. A
    stride longer than the window counts as its length.
    samples = 0 is without dropout, one pass a window: mutual information is then what overlapping windows disagree by,
    0 under a single one. window_batch: windows at a time, `auto` as memory allows; it does
    not change the samples. backend: what computes, `eager`, `compile`, `openvino` (CPU) or `int8` (the same by graphs
    that `medssl quantise` made; needs `prepare`). Called as a MONAI inferer it returns the mean probabilities.
    Raises ConfigError for numbers that no prediction can have (`SamplingOptions`).
    """

    def __init__(
        self,
        window: Sequence[int],
        stride: Sequence[int],
        samples: int = 20,
        window_batch: int | str = "auto",
        mode: str = "fast",
        backend: str = "eager",
    ) -> None:
        super().__init__()
        given = {"samples": samples, "window_batch": window_batch, "mode": mode, "backend": backend}
        asked = make_options(SamplingOptions, {"window_size": window, "stride": stride, **given})
        self.window, self.stride = tuple(asked.window_size or ()), tuple(asked.stride)
        self.samples, self.window_batch = asked.samples, asked.window_batch
        self.mode, self.backend = asked.mode, asked.backend
        self._opened: tuple[str, Backend] | None = None
        self._models_dir: Path | None = None

    def __call__(self, inputs: Tensor, network: nn.Module, *args: object, **kwargs: object) -> Tensor:  # type: ignore[override]
        return self.statistics(inputs, network).mean

    def settings(self) -> dict[str, Any]:
        """What a prediction depends on besides the network and the scan."""
        settings = {
            "samples": self.samples,
            "window": list(self.window),
            "stride": list(self.stride),
            "mode": self.mode,
            "backend": self.backend,
        }
        backend = None if self._opened is None else self._opened[1]
        return settings | ({"graphs": backend.graphs.digest} if isinstance(backend, Int8Backend) else {})

    def bundle_settings(self) -> dict[str, Any]:
        """The keys of an exported bundle's inference.json that make an inferer like this one, but its window."""
        return {
            "samples": self.samples,
            "stride": list(self.stride),
            "window_batch": self.window_batch,
            "mode": self.mode,
            "backend": self.backend,
        }

    def require_network(self, network: nn.Module) -> None:
        """ConfigError if samples of a network without dropout are asked for, or a back end that it has no parts for."""
        require_dropout(network, self.samples)
        require_network_for(self.backend, network)

    def prepare(self, network: nn.Module, models_dir: Path) -> None:
        """Open the back end for `network`, whose weights lie in `models_dir`; ConfigError where it cannot be had."""
        if self.samples > 0 and not has_dropout(network):
            logger.warning(
                "network %s has no dropout layer that drops anything: its %d samples are all the same. --samples 0 "
                "gives the same in one pass a window.",
                type(network).__name__,
                self.samples,
            )
        self._models_dir = models_dir
        self._open_backend(network)

    def use(self, backend: Backend, network: nn.Module) -> None:
        """Predict with this back end, opened for `network`, until the network's weights change; not for `eager`."""
        self._opened = weights_digest(network), backend

    def statistics(self, inputs: Tensor, network: nn.Module) -> MCStatistics:
        """Statistics over the samples for `inputs` (B, C, H, W, D); retried once with fewer windows at a time."""
        return self.running_statistics(inputs, network, (max(1, self.samples),))[0]

    @torch.inference_mode()
    def running_statistics(self, inputs: Tensor, network: nn.Module, counts: Sequence[int]) -> list[MCStatistics]:
        """For each n of `counts` what `statistics` gives with `samples` = n from the same random state.

        A pass that several of them need is computed once. Memory grows with the number of counts.
        """
        seed = int(torch.randint(2**31, ()))
        with mc_dropout(network, enabled=self.samples > 0):
            batch = self._windows_at_a_time(network, inputs)
            try:
                return self._of_scans(inputs, network, counts, batch, seed)
            except RuntimeError as error:
                if not _is_out_of_memory(error):
                    raise
            smaller = max(1, batch // 4)
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            try:
                return self._of_scans(inputs, network, counts, smaller, seed)
            except RuntimeError as error:
                if not _is_out_of_memory(error):
                    raise
                raise MedsslError(
                    f"out of memory at {smaller} windows of {self.window} for a scan of {tuple(inputs.shape[2:])} "
                    "voxels. Use a machine with more memory, or train with a smaller --patch_size."
                ) from error

    def working_bytes(self, network: nn.Module, channels: int) -> float:
        """Memory for the windows that go through the network at a time; of `auto` one, as it takes what is there."""
        number = 1 if self.window_batch == AUTO else int(self.window_batch)
        return windows_bytes(network, channels, self.window, number)

    def plan(self, size: Sequence[int], samples: int) -> Plan:
        """The windows of a scan of `size` voxels (at least the window) and the samples that each of them draws."""
        plan = overlap_plan if self.mode == "fast" else grid_plan
        return plan(size, self.window, self.stride, samples)

    def _of_scans(
        self, inputs: Tensor, network: nn.Module, counts: Sequence[int], batch: int, seed: int
    ) -> list[MCStatistics]:
        """The statistics of every count, over all scans of `inputs`; each scan draws its own samples."""
        scans = [
            self._of_scan(image[None], network, counts, batch, seed + number) for number, image in enumerate(inputs)
        ]
        return [joined(parts) for parts in zip(*scans, strict=True)]

    def _of_scan(
        self, image: Tensor, network: nn.Module, counts: Sequence[int], batch: int, seed: int
    ) -> list[MCStatistics]:
        """The statistics of every count for one scan (1, C, *size)."""
        padded, inside = pad_to_window(image, self.window)
        size = padded.shape[2:]
        plans = [self.plan(size, count) for count in counts]
        backend = self._open_backend(network)
        passes = Passes(backend, padded, self.window, batch, seed if self.samples > 0 else None)
        shares = self.mode != "reference" and self.samples > 0 and backend.shares_encoder
        run = passes.shared if shares else passes.whole
        sums = [StreamingStatistics(size) for _ in plans]
        seconds = [0.0] * len(plans)
        union = _union(plans)
        with work("windows", sum(union.values()), "passes") as progress:
            for portion, probs, portion_seconds in _timed(run(union), image.device):
                for row, one_pass in enumerate(portion):
                    for number, plan in enumerate(plans):
                        samples = plan.get(one_pass.start, 0)
                        if one_pass.sample < samples:  # windows count alike, whatever their number of samples
                            sums[number].update(probs[row : row + 1], one_pass.start, 1 / samples)
                            seconds[number] += portion_seconds / len(portion)
                progress.advance(len(portion))
        return [
            MCStatistics(total.mean[inside], total.entropy[inside], total.mutual_information[inside], spent)
            for total, spent in zip(sums, seconds, strict=True)
        ]

    def _open_backend(self, network: nn.Module) -> Backend:
        """The back end for the network as it is now; one that was built for these weights is used again."""
        if self.backend == "eager":
            return open_backend(self.backend, network, self.window)
        weights = weights_digest(network)
        if self._opened is None or self._opened[0] != weights:
            self._opened = weights, open_backend(self.backend, network, self.window, self._models_dir)
        return self._opened[1]

    def _windows_at_a_time(self, network: nn.Module, inputs: Tensor) -> int:
        if self.window_batch == AUTO:
            return windows_at_a_time(network, pad_to_window(inputs[:1], self.window)[0], self.window)
        return int(self.window_batch)


def pad_to_window(image: Tensor, window: Sequence[int]) -> tuple[Tensor, Box]:
    """`image` (1, C, *size) with zeros around it where the window is longer, and where it lies in that."""
    missing = [max(0, w - length) for w, length in zip(window, image.shape[2:], strict=True)]
    before = [total // 2 for total in missing]
    sides = [(first, total - first) for first, total in zip(before, missing, strict=True)]
    return F.pad(image, [n for pair in reversed(sides) for n in pair]), box(before, image.shape[2:])


def _union(plans: Sequence[Plan]) -> Plan:
    """The passes of all plans, each once."""
    starts = sorted(set().union(*plans))
    return {start: max(plan.get(start, 0) for plan in plans) for start in starts}


def _timed(
    batches: Iterator[tuple[list[Pass], Tensor]], device: torch.device
) -> Iterator[tuple[list[Pass], Tensor, float]]:
    """Each of `batches` with the seconds it took to compute."""
    started = time.perf_counter()
    for portion, probs in batches:
        if device.type == "cuda":
            torch.cuda.synchronize(device)  # the clock must not run ahead of the device
        yield portion, probs, time.perf_counter() - started
        started = time.perf_counter()


def joined(parts: Sequence[MCStatistics], dim: int = 0) -> MCStatistics:
    """Parts of a batch (dim 0) or of a scan (dim -1) as a whole; they took their time one after the other."""
    return MCStatistics(
        torch.cat([part.mean for part in parts], dim),
        torch.cat([part.entropy for part in parts], dim),
        torch.cat([part.mutual_information for part in parts], dim),
        sum(part.seconds for part in parts),
    )


def _is_out_of_memory(error: RuntimeError) -> bool:
    return (
        isinstance(error, torch.cuda.OutOfMemoryError)
        or "allocate memory" in str(error)
        or "out of memory" in str(error)
    )
