"""Statistics of samples that come one at a time, whole scans or windows of one, and are not kept."""

from collections.abc import Sequence
from types import EllipsisType

import torch
from torch import Tensor

from medssl.core.precision import at_least_float32
from medssl.uncertainty.maps import entropy_of


class StreamingStatistics:
    """Mean, entropy and mutual information, voxel by voxel, whatever the number of samples in the memory of one.

    A sample is all that is said of a voxel at a time: where windows overlap a voxel has a sample of each of them. Kept
    are a (B, C, *size) sum of probabilities, a (B, *size) sum of entropies and a (*size) sum of weights, on the
    samples' device, without gradients, in float32 or in float64 if the samples are. size: of the scan where samples are
    windows of it; None for samples of the whole.
    """

    def __init__(self, size: Sequence[int] | None = None) -> None:
        self._size = None if size is None else tuple(size)
        self._probs = self._entropies = self._weights = torch.empty(0)
        self.count = 0

    def update(self, probs: Tensor, start: Sequence[int] | None = None, weight: float = 1.0) -> None:
        """Adds a sample (B, C, *spatial) that sums to 1 over C, of the window that begins at `start`.

        weight: how much it counts against others. Raises ValueError where the shape does not fit.
        """
        sample = at_least_float32(probs.detach())  # 20 of them summed in float16 lose the third digit
        if not self.count:
            self._allocate(sample)
        begins = [0] * (sample.ndim - 2) if start is None else start
        lengths = zip(begins, sample.shape[2:], strict=True)
        inside: tuple[EllipsisType | slice, ...] = (..., *[slice(first, first + length) for first, length in lengths])
        if self._probs[inside].shape != sample.shape or (start is None and sample.shape != self._probs.shape):
            raise ValueError(f"sample of shape {tuple(sample.shape)} at {begins} of {tuple(self._probs.shape)}.")
        self._probs[inside].add_(sample, alpha=weight)
        self._entropies[inside].add_(entropy_of(sample), alpha=weight)
        self._weights[inside].add_(weight)
        self.count += 1

    @property
    def mean(self) -> Tensor:
        """Mean probabilities, (B, C, *size)."""
        if not self.count:
            raise RuntimeError("no samples yet: call update() first.")
        return self._probs / self._weights

    @property
    def entropy(self) -> Tensor:
        """Predictive entropy, (B, *size), in bits."""
        return entropy_of(self.mean)

    @property
    def mutual_information(self) -> Tensor:
        """Mutual information, (B, *size), in bits."""
        return (self.entropy - self._entropies / self._weights).clamp_min(0)

    def _allocate(self, sample: Tensor) -> None:
        size = self._size or tuple(sample.shape[2:])
        self._probs = sample.new_zeros(*sample.shape[:2], *size)
        self._entropies = sample.new_zeros(len(sample), *size)
        self._weights = sample.new_zeros(size)
