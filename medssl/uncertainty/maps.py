"""Voxel-wise uncertainty of Monte Carlo samples: predictive entropy and mutual information, in bits."""

import math

import torch
from torch import Tensor

from medssl.core.precision import at_least_float32


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
