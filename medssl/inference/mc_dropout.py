"""Sliding-window inference with MC dropout: mean probabilities, entropy, mutual information."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from monai.inferers import Inferer, sliding_window_inference
from torch import Tensor, nn

from medssl.errors import MedsslError
from medssl.networks.mc_dropout import mc_dropout
from medssl.uncertainty.maps import StreamingStatistics


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
    """`samples` Monte Carlo passes over overlapping windows, averaged as they come: memory does not grow with samples.

    window and stride are (height, width, depth) in voxels; the thesis uses 128x128x32 and 8x8x8 with 20 samples.
    samples = 0 is one deterministic pass without dropout. Called as a MONAI inferer it returns the mean probabilities.
    """

    def __init__(self, window: Sequence[int], stride: Sequence[int], samples: int = 20, window_batch: int = 4) -> None:
        super().__init__()
        self.window, self.stride = tuple(window), tuple(stride)
        self.samples, self.window_batch = samples, window_batch

    def __call__(self, inputs: Tensor, network: nn.Module, *args: object, **kwargs: object) -> Tensor:  # type: ignore[override]
        return self.statistics(inputs, network).mean

    def settings(self) -> dict[str, Any]:
        """What a prediction depends on besides the network and the scan."""
        return {"samples": self.samples, "window": list(self.window), "stride": list(self.stride)}

    def statistics(self, inputs: Tensor, network: nn.Module) -> MCStatistics:
        """Statistics over the samples for `inputs` (B, C, H, W, D); retried once with fewer windows at a time."""
        (found,) = self.running_statistics(inputs, network, (max(1, self.samples),))
        return found

    def running_statistics(self, inputs: Tensor, network: nn.Module, counts: Sequence[int]) -> list[MCStatistics]:
        """Statistics over the first n samples for each n of the rising `counts`, all from one series of samples.

        Each is what `statistics` gives with `samples` = n from the same random state. Memory grows with the counts.
        """
        random_state = torch.get_rng_state()
        try:
            return self._running(inputs, network, counts, self.window_batch)
        except RuntimeError as error:
            if not _is_out_of_memory(error):
                raise
        smaller = max(1, self.window_batch // 4)
        torch.set_rng_state(random_state)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        try:
            return self._running(inputs, network, counts, smaller)
        except RuntimeError as error:
            if not _is_out_of_memory(error):
                raise
            raise MedsslError(
                f"out of memory at {smaller} windows of {self.window} for a scan of {tuple(inputs.shape[2:])} voxels. "
                "Use a machine with more memory, or train with a smaller --patch_size."
            ) from error

    @torch.inference_mode()
    def _running(
        self, inputs: Tensor, network: nn.Module, counts: Sequence[int], window_batch: int
    ) -> list[MCStatistics]:
        streaming, seconds, found = StreamingStatistics(), 0.0, []
        with mc_dropout(network, enabled=self.samples > 0):
            for count in counts:
                started = time.perf_counter()
                while streaming.count < count:
                    streaming.update(self._one_sample(inputs, network, window_batch))
                if inputs.is_cuda:
                    torch.cuda.synchronize(inputs.device)  # the clock must not run ahead of the device
                seconds += time.perf_counter() - started
                found.append(MCStatistics(streaming.mean, streaming.entropy, streaming.mutual_information, seconds))
        return found

    def _one_sample(self, inputs: Tensor, network: nn.Module, window_batch: int) -> Tensor:
        # half a voxel more, as MONAI rounds the stride it computes from the overlap down
        overlap = [max(0.0, 1 - (s + 0.5) / w) for s, w in zip(self.stride, self.window, strict=True)]
        probs = sliding_window_inference(
            inputs,
            self.window,
            window_batch,
            lambda windows: torch.softmax(network(windows).float(), dim=1),
            overlap=overlap,
        )
        assert isinstance(probs, Tensor)  # noqa: S101  (one output network: MONAI returns one tensor)
        return probs


def _is_out_of_memory(error: RuntimeError) -> bool:
    return (
        isinstance(error, torch.cuda.OutOfMemoryError)
        or "allocate memory" in str(error)
        or "out of memory" in str(error)
    )
