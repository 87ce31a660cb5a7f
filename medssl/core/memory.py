"""Memory that can still be had, and the refusal of work that needs more of it."""

from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from medssl.core.errors import ConfigError

if TYPE_CHECKING:
    import torch

CGROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
_GB = 1e9


def available_bytes(device: "torch.device | str" = "cpu") -> int:
    """Memory that this process can still get, in bytes: of the GPU for a CUDA device, else of the machine.

    A limit of the control group (a container, a batch system) counts, where it is nearer than the machine's.
    """
    if str(device).startswith("cuda"):
        import torch  # noqa: PLC0415  (seconds of import that only a GPU is worth)

        free, _total = torch.cuda.mem_get_info(device)
        return int(free)
    machine = int(psutil.virtual_memory().available)
    return min([machine, *_free_of_groups()])


def require_memory(need_bytes: float, what: str, way_out: str, device: "torch.device | str" = "cpu") -> None:
    """ConfigError if `need_bytes` are more than there is: `what` needs about so much, so much is free, `way_out`.

    what: the work, e.g. "predicting case_3"; way_out: a sentence or more, e.g. "Use a larger stride."
    """
    free = available_bytes(device)
    if need_bytes > free:
        owner = " on the GPU" if str(device).startswith("cuda") else ""
        raise ConfigError(f"{what} needs about {gigabytes(need_bytes)}, {gigabytes(free)} are free{owner}. {way_out}")


def gigabytes(number_of_bytes: float) -> str:
    """`31 GB`; with a digit after the point below 10 GB: `0.4 GB`; below a tenth of one in MB."""
    amount = number_of_bytes / _GB
    if amount < 0.1:
        return f"{1000 * amount:.0f} MB"
    return f"{amount:.0f} GB" if amount >= 9.95 else f"{amount:.1f} GB"


def _free_of_groups() -> list[int]:
    """What the limits of this process' control groups leave, in bytes; none where there are no limits."""
    return [left for folder, names in _groups() if (left := _left_in(folder, *names)) is not None]


def _groups() -> list[tuple[Path, tuple[str, str, str]]]:
    """The folders of the control groups of this process, and the files of limit, use and reclaimable use in them."""
    version_2 = ("memory.max", "memory.current", "inactive_file")
    version_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    groups = []
    for line in _text(MEMBERSHIP).splitlines():
        _number, controllers, path = line.split(":", 2)
        if not controllers:
            groups += [(folder, version_2) for folder in _upwards(CGROUPS, path)]
        elif "memory" in controllers.split(","):
            groups += [(folder, version_1) for folder in _upwards(CGROUPS / "memory", path)]
    return groups


def _upwards(root: Path, path: str) -> list[Path]:
    """`root`, and the folders below it down to `path`: a group has its own limit and those of all above it."""
    folders = [root]
    for part in Path(path.lstrip("/")).parts:
        folders.append(folders[-1] / part)
    return folders


def _left_in(folder: Path, limit_file: str, use_file: str, reclaimable_key: str) -> int | None:
    """What a control group's limit leaves, in bytes; None without a limit."""
    limit = _text(folder / limit_file).strip()
    use = _text(folder / use_file).strip()
    if not limit.isdigit() or not use.isdigit():
        return None
    reclaimable = 0
    for line in _text(folder / "memory.stat").splitlines():
        key, _space, value = line.partition(" ")
        if key == reclaimable_key:
            reclaimable = int(value)
    return max(0, int(limit) - int(use) + reclaimable)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
