"""Which pixels or voxels a pseudo-label is taken from: those the teacher is confident of, or certain."""

import math

from torch import Tensor

from medssl.uncertainty.maps import entropy_nats


def confidence_mask(probs: Tensor, threshold: float | Tensor, dim: int = 1) -> Tensor:
    """Where the highest probability over the classes in `dim` is at least `threshold`: bool, probs without `dim`.

    threshold: in [0, 1], one number or a map of one for every place.
    """
    return probs.amax(dim) >= threshold


def entropy_mask(probs: Tensor, limit: float | Tensor, dim: int = 1) -> Tensor:
    """Where the entropy over the classes in `dim`, in nats, is below `limit`: bool, probs without `dim`."""
    return entropy_nats(probs, dim) < limit


def ua_mt_entropy_limit(num_classes: int, ramp: float) -> float:
    """The entropy in nats below which UA-MT learns: (3/4 + 1/4 ramp) ln C.

    ramp: from 0 to 1 in the course of training (`sigmoid_ramp`); at 1 the limit is the highest entropy there is.
    """
    return (0.75 + 0.25 * ramp) * math.log(num_classes)
