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
MOST_SAMPLES = 10_000  # far beyond what changes a mean; more is a slip of the keyboard


@dataclass(frozen=True)
class SamplingOptions:
    """How a network predicts scans in windows. A stride longer than the window counts as the window's length."""

    samples: int = option(
        20, "Monte Carlo samples of each voxel; 0: one pass without dropout", at_least=0, at_most=MOST_SAMPLES
    )
    stride: list[int] = option((8, 8, 8), "distance between neighbouring windows, in voxels", at_least=1)
    window_size: list[int] | None = option(None, "size of the windows, in voxels; default: patch_size", at_least=1)
    window_batch: int | str = option(AUTO, "windows computed at once; auto: as many as memory allows", incidental=True)
    mode: str = option(
        "fast",
        "how samples are drawn: reference makes every pass, exact shares work, fast shares passes, too",
        choices=MODES,
    )
    backend: str = option(
        "eager",
        "what computes: eager or compile (PyTorch), openvino, or int8 (OpenVINO in 8-bit integers)",
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

    samples: int = option(5, "predictions of each slice; 0: one without random draws", at_least=0, at_most=MOST_SAMPLES)
    slice_batch: int = option(8, "slices computed at once", at_least=1)


def checked_sampling(given: Mapping[str, Any]) -> dict[str, Any]:
    """`given` without what is None, its options of sampling in their types: a stride "8,8,8" is [8, 8, 8].

    Names that are no options of sampling stay as they are. Raises ConfigError with name, value and what is expected.
    """
    present = {name: value for name, value in given.items() if value is not None}
    own = {name: present[name] for name in names_of(SamplingOptions) if name in present}
    options = make_options(SamplingOptions, own)
    return present | {name: getattr(options, name) for name in own}


def require_stride_within(stride: Sequence[int], window: Sequence[int]) -> None:
    """ConfigError for a stride that is longer than the window on an axis: voxels between windows would be left out."""
    for axis, (step, length) in enumerate(zip(stride, window, strict=True), 1):
        if step > length:
            raise ConfigError(
                f"stride {_joined(stride)}: longer than the window {_joined(window)} on axis {axis}. "
                f"Expected at most the window. Give {_joined(stride_within(stride, window))} or less."
            )


def stride_within(stride: Sequence[int], window: Sequence[int]) -> list[int]:
    """The stride that is used: at most the window."""
    return [min(step, length) for step, length in zip(stride, window, strict=True)]


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


def _joined(numbers: Sequence[int]) -> str:
    return ",".join(str(number) for number in numbers)
