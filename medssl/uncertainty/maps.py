"""Voxel-wise uncertainty of Monte Carlo samples: predictive entropy and mutual information, in bits."""

import math

import torch
from torch import Tensor

from medssl.precision import at_least_float32


def entropy_nats(probs: Tensor, dim: int = -1) -> Tensor:
    """Entropy over the classes, in nats: -sum_c p_c ln p_c, with 0 ln 0 = 0; as the thesis' thresholds 0.4 and 1.2."""
    return torch.special.entr(at_least_float32(probs)).sum(dim)


def entropy_of(mean_probs: Tensor, dim: int = 1) -> Tensor:
    """Entropy over the classes, in bits: -sum_c p_c log2 p_c, with 0 log 0 = 0.

    mean_probs: probabilities summing to 1 over `dim`, by default (B, C, *spatial). Returns the shape without `dim`,
    in [0, log2 C].
    """
    return entropy_nats(mean_probs, dim) / math.log(2)


def predictive_entropy(probs: Tensor) -> Tensor:
    """Entropy of the mean prediction, in bits (thesis, section 3.3.2).

    probs: (T, B, C, *spatial), T Monte Carlo samples summing to 1 over C. Returns (B, *spatial) in [0, log2 C].
    """
    return entropy_of(at_least_float32(probs).mean(0))


def mutual_information(probs: Tensor) -> Tensor:
    """Entropy of the mean prediction minus the samples' mean entropy, in bits: how far the samples disagree.

    probs: (T, B, C, *spatial), T Monte Carlo samples summing to 1 over C. Returns (B, *spatial) in [0, log2 C].
    """
    # Never negative (Jensen), save for rounding.
    return (predictive_entropy(probs) - entropy_of(probs, dim=2).mean(0)).clamp_min(0)


class StreamingStatistics:
    """Mean, entropy and mutual information of samples that come one at a time and are not kept.

    Memory is one (B, C, *spatial) sum of probabilities and one (B, *spatial) sum of entropies, whatever the number of
    samples. Sums are on the samples' device, without gradients, in float32 or in float64 if the samples are.
    """

    def __init__(self) -> None:
        self.count = 0
        self._probs_sum = torch.empty(0)
        self._entropy_sum = torch.empty(0)

    def update(self, sample_probs: Tensor) -> None:
        """Adds one sample (B, C, *spatial), summing to 1 over C; raises ValueError where its shape is a new one."""
        sample = at_least_float32(sample_probs.detach())  # 20 of them summed in float16 lose the third digit
        if not self.count:
            # A copy, since the sums grow in place.
            self._probs_sum, self._entropy_sum = sample.clone(), entropy_of(sample)
        elif sample.shape != self._probs_sum.shape:
            raise ValueError(f"sample of shape {tuple(sample.shape)} after {tuple(self._probs_sum.shape)}.")
        else:
            self._probs_sum += sample
            self._entropy_sum += entropy_of(sample)
        self.count += 1

    @property
    def mean(self) -> Tensor:
        """Mean probabilities, (B, C, *spatial)."""
        if not self.count:
            raise RuntimeError("no samples yet: call update() first.")
        return self._probs_sum / self.count

    @property
    def entropy(self) -> Tensor:
        """Predictive entropy, (B, *spatial), in bits."""
        return entropy_of(self.mean)

    @property
    def mutual_information(self) -> Tensor:
        """Mutual information, (B, *spatial), in bits."""
        return (self.entropy - self._entropy_sum / self.count).clamp_min(0)
