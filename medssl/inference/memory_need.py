"""How much memory a prediction takes, told before it is taken; the numbers are measured (tests/inference)."""

import math
from collections.abc import Sequence

from torch import nn

from medssl.inference.window_batch import bytes_given_out

FLOAT_BYTES = 4
LIVE_SHARE = 1 / 3  # of what the layers of a network give out, alive at a time
WAY_OUT = "Resample the scan to fewer voxels, cut it into parts, or use a machine with more memory."


def maps_bytes(size: Sequence[int], classes: int) -> float:
    """Bytes for reading a scan of `size` voxels and for its result on the scan's own grid."""
    return (2 * classes + 9) * math.prod(size) * FLOAT_BYTES


def statistics_bytes(size: Sequence[int], classes: int, counts: int = 1) -> float:
    """Bytes for the sums over the samples and what they say, on the network's grid of `size` voxels.

    counts: how many numbers of samples are looked at; each has sums of its own.
    """
    first, further = 4 * classes + 5, 2 * classes + 4
    return (first + (counts - 1) * further) * math.prod(size) * FLOAT_BYTES


def windows_bytes(network: nn.Module, channels: int, window: Sequence[int], number: int) -> float:
    """Bytes for `number` windows in the network at a time; 0 for a network whose sizes cannot be computed ahead."""
    try:
        given_out = bytes_given_out(network, (1, channels, *window))
    except (RuntimeError, NotImplementedError):  # it looks at numbers, and sizes have none
        return 0.0
    return LIVE_SHARE * number * given_out
