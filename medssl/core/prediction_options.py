"""What a prediction may be asked for, checked in one place: by commands, configurations, trainings and inferers.

Nothing heavy is imported here, so that a command refuses nonsense before it begins.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medssl.core.errors import ConfigError
from medssl.core.options import make_options, names_of, option

MODES = ("reference", "exact", "fast")
BACKENDS = ("eager", "compile", "openvino", "int8")
AUTO = "auto"
AXES = 3


@dataclass(frozen=True)
class SamplingOptions:
    """How a network predicts scans in windows. A stride longer than the window counts as the window's length."""

    samples: int = option(20, "Monte Carlo samples; 0: one pass without dropout", at_least=0)
    stride: list[int] = option((8, 8, 8), "distance of neighbouring windows, in voxels", at_least=1)
    window_size: list[int] | None = option(None, "size of the windows, in voxels; the patch's by default", at_least=1)
    window_batch: int | str = option(AUTO, "windows computed at once; auto: as memory allows", incidental=True)
    mode: str = option(
        "fast", "how samples are drawn: fast shares passes between windows, reference does every pass", choices=MODES
    )
    backend: str = option(
        "eager",
        "what computes: PyTorch as it is or compiled, OpenVINO, or OpenVINO in 8-bit integers",
        choices=BACKENDS,
    )

    def __post_init__(self) -> None:
        _require_axes("stride", self.stride)
        if self.window_size is not None:
            _require_axes("window_size", self.window_size)
        batch = str(self.window_batch)
        if batch != AUTO and not (batch.isdecimal() and int(batch) > 0):
            raise ConfigError(f"window_batch {batch}: expected {AUTO} or a whole number of windows from 1 on.")


@dataclass(frozen=True)
class SliceOptions:
    """How a network of pictures predicts scans slice by slice."""

    samples: int = option(5, "predictions of each slice; 0: one without chance", at_least=0)
    slice_batch: int = option(8, "slices computed at once", at_least=1)


def checked_sampling(given: Mapping[str, Any]) -> dict[str, Any]:
    """`given` without what is None, its options of sampling in their types: a stride "8,8,8" is [8, 8, 8].

    Names that are no options of sampling stay as they are. Raises ConfigError with name, value and what is expected.
    """
    present = {name: value for name, value in given.items() if value is not None}
    own = {name: present[name] for name in names_of(SamplingOptions) if name in present}
    options = make_options(SamplingOptions, own)
    return present | {name: getattr(options, name) for name in own}


def parse_shard(shard: str) -> tuple[int, int]:
    """(i, n) of "i/n" with 1 <= i <= n; ConfigError otherwise."""
    first, _, last = str(shard).partition("/")
    if not (first.isdigit() and last.isdigit() and 1 <= int(first) <= int(last)):
        raise ConfigError(f"shard '{shard}': expected i/n with 1 <= i <= n, for example 2/8.")
    return int(first), int(last)


def rising_counts(values: Sequence[int]) -> list[int]:
    """Different numbers of samples, rising; one that is given twice counts once.

    Raises ConfigError unless there are some, all above 0.
    """
    counts = sorted(set(values))
    if not counts or counts[0] < 1:
        given = ",".join(map(str, values)) or "none"
        raise ConfigError(f"values {given}: expected numbers of samples from 1 on, for example 1,5,20.")
    return counts


def _require_axes(name: str, numbers: Sequence[int]) -> None:
    if len(numbers) != AXES:
        given = ",".join(map(str, numbers))
        raise ConfigError(f"{name} {given}: {len(numbers)} numbers, expected {AXES}, one an axis, for example 8,8,8.")
