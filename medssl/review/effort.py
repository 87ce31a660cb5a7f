"""How long a review takes, and which cases fit into the time there is."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from medssl.core.errors import ConfigError

_NUMBER = r"\d+(?:\.\d+)?"
_BUDGET = re.compile(rf"(?:({_NUMBER})h(?:(\d+)$)?)?(?:({_NUMBER})m(?:in)?)?(?:({_NUMBER})s)?")


@dataclass(frozen=True)
class Work:
    """What is to be done on a case: slices that need looking at, and the uncertain area on all slices together."""

    slices: int
    area_cm2: float


@dataclass(frozen=True)
class Effort:
    """A reader opens a case, looks at every slice that needs it and settles what is uncertain there.

    Seconds for a case, for a slice and for a square centimetre. Uncertain is a voxel in the surroundings of a structure
    with an entropy above `uncertain_bits`; a slice with at least `slice_mm2` of them needs looking at.
    """

    open_seconds: float = 30.0
    slice_seconds: float = 2.0
    area_seconds: float = 2.0
    uncertain_bits: float = 0.5
    slice_mm2: float = 20.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not (math.isfinite(value) and value >= 0):
                raise ConfigError(f"{name} {value}: expected a number of at least 0.")

    def seconds(self, work: Work) -> float:
        """Estimated time for a case."""
        return self.open_seconds + self.slice_seconds * work.slices + self.area_seconds * work.area_cm2

    def work(self, near: np.ndarray, entropy: np.ndarray, spacing_mm: tuple[float, ...], axis: int) -> Work:
        """What is to be done on the slices across `axis`; where nothing was found, all voxels count.

        near: the surroundings of all structures.
        """
        uncertain = entropy > self.uncertain_bits
        counted = near & uncertain if near.any() else uncertain
        others = tuple(other for other in range(counted.ndim) if other != axis)
        areas_mm2 = counted.sum(axis=others) * math.prod(spacing_mm[other] for other in others)
        checked = (areas_mm2 > 0) & (areas_mm2 >= self.slice_mm2)
        return Work(int(checked.sum()), float(areas_mm2.sum()) / 100)


@dataclass(frozen=True)
class Choice:
    """Whether a case is within the budget, and the seconds that were left of it when it was its turn."""

    chosen: bool
    left_seconds: float


def parse_budget(text: str) -> float:
    """Seconds of a time like 30min, 1h30, 1.5h or 90s; ConfigError for anything else and for no time at all."""
    matched = _BUDGET.fullmatch(text.strip().lower().replace(" ", ""))
    parts = [float(part or 0) for part in matched.groups()] if matched else []
    seconds = sum(part * unit for part, unit in zip(parts, (3600, 60, 60, 1), strict=True)) if parts else 0.0
    if not seconds:
        raise ConfigError(f"budget '{text}': expected a time above 0 with its unit, e.g. 30min, 1h30 or 90s.")
    return seconds


def choose(seconds: Sequence[float], budget_seconds: float) -> list[Choice]:
    """For cases in the order of need, which of them fit: one that is too long for what is left is passed over."""
    left, choices = budget_seconds, []
    for needed in seconds:
        choices.append(Choice(needed <= left, left))
        left -= needed if needed <= left else 0.0
    return choices
