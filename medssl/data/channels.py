"""nnU-Net's channels, `X_0000` and `X_0001` of one scan X: refused, as medssl reads one channel."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path

from medssl.core.errors import DataError
from medssl.data.scan_names import channel_of


def refuse_channels(folder: Path, case_ids: Iterable[str], label_names: Collection[str] = ()) -> None:
    """Raise DataError where several of the ids are channels of one scan. label_names: stems of the label files.

    `X_0000`, `X_0001` are channels if there is a label called X. Without it, X must hold a digit and have the numbers
    0, 1, ... without a gap, so that `case_0000`, `case_0001` stay two scans. A label called `X_0001` says the same.
    """
    numbers: dict[str, set[int]] = defaultdict(set)
    for case_id in case_ids:
        channel = channel_of(case_id)
        if channel is not None:
            numbers[channel[0]].add(channel[1])
    scans = sorted(name for name, own in numbers.items() if _are_channels(name, own, label_names))
    if not scans:
        return
    first = [f"{scans[0]}_{number:04d}" for number in sorted(numbers[scans[0]])]
    raise DataError(
        f"{folder}: {first[0]} and {first[1]} are channels of one scan by nnU-Net's names; {len(scans)} scan(s) have "
        f"several. Expected one file a scan: medssl reads one channel so far. Keep one channel in this folder, and "
        f"move the others elsewhere (all files that end in {first[1][-5:]}, for example). If they are scans of their "
        "own, rename them."
    )


def _are_channels(name: str, numbers: set[int], label_names: Collection[str]) -> bool:
    if len(numbers) < 2 or any(f"{name}_{number:04d}" in label_names for number in numbers if number > 0):
        return False
    has_digit = any(character.isdigit() for character in name)
    return name in label_names or (has_digit and numbers == set(range(len(numbers))))
