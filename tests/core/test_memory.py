from pathlib import Path
from types import SimpleNamespace

import pytest

from medssl.core import memory
from medssl.core.errors import ConfigError
from medssl.core.memory import available_bytes, gigabytes, require_memory

GB = 1_000_000_000


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with 20 GB free and no control group; gives the folder for groups."""
    monkeypatch.setattr(memory.psutil, "virtual_memory", lambda: SimpleNamespace(available=20 * GB))
    monkeypatch.setattr(memory, "CGROUPS", tmp_path)
    monkeypatch.setattr(memory, "MEMBERSHIP", tmp_path / "membership")
    return tmp_path


def write_group(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)


def test_without_control_groups_the_machine_says_what_is_free(machine: Path) -> None:
    assert available_bytes() == 20 * GB


def test_the_limit_of_a_control_group_counts_when_it_is_nearer(machine: Path) -> None:
    (machine / "membership").write_text("0::/jobs/7\n")
    job = {"memory.max": f"{8 * GB}\n", "memory.current": f"{5 * GB}\n", "memory.stat": f"anon 1\ninactive_file {GB}\n"}
    write_group(machine / "jobs" / "7", job)
    assert available_bytes() == 4 * GB  # the cache of files is given back when it is needed


def test_the_limit_of_a_group_above_counts_too(machine: Path) -> None:
    (machine / "membership").write_text("0::/jobs/7\n")
    write_group(machine / "jobs" / "7", {"memory.max": "max\n", "memory.current": f"{GB}\n"})
    write_group(machine / "jobs", {"memory.max": f"{3 * GB}\n", "memory.current": f"{GB}\n"})
    assert available_bytes() == 2 * GB


def test_control_groups_of_the_first_version_count_too(machine: Path) -> None:
    (machine / "membership").write_text("4:cpu,cpuacct:/\n9:memory:/\n")
    files = {"memory.limit_in_bytes": f"{6 * GB}\n", "memory.usage_in_bytes": f"{5 * GB}\n"}
    write_group(machine / "memory", files)
    assert available_bytes() == GB


def test_a_group_without_a_limit_does_not_count(machine: Path) -> None:
    (machine / "membership").write_text("0::/\n")
    write_group(machine, {"memory.max": "max\n", "memory.current": f"{GB}\n"})
    assert available_bytes() == 20 * GB


def test_a_group_that_is_full_leaves_nothing(machine: Path) -> None:
    (machine / "membership").write_text("0::/\n")
    write_group(machine, {"memory.max": f"{GB}\n", "memory.current": f"{2 * GB}\n"})
    assert available_bytes() == 0


def test_a_gpu_says_itself_what_is_free(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda device: (3 * GB, 8 * GB))
    assert available_bytes("cuda:0") == 3 * GB


def test_work_that_needs_more_than_is_free_is_refused_with_the_way_out(machine: Path) -> None:
    expected = r"^predicting case_3 needs about 31 GB, 20 GB are free\. Use a larger stride\.$"
    with pytest.raises(ConfigError, match=expected):
        require_memory(31 * GB, "predicting case_3", "Use a larger stride.")


def test_work_that_fits_goes_on(machine: Path) -> None:
    require_memory(19 * GB, "predicting case_3", "Use a larger stride.")


def test_the_refusal_of_a_gpu_names_it(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda device: (GB, 8 * GB))
    with pytest.raises(ConfigError, match=r"needs about 2\.0 GB, 1\.0 GB are free on the GPU"):
        require_memory(2 * GB, "a step", "Use a smaller patch.", "cuda")


@pytest.mark.parametrize(
    ("number", "text"), [(8e6, "8 MB"), (0.4 * GB, "0.4 GB"), (9.96 * GB, "10 GB"), (31.2 * GB, "31 GB")]
)
def test_gigabytes_are_short(number: float, text: str) -> None:
    assert gigabytes(number) == text


def test_this_machine_has_memory() -> None:
    assert 0 < available_bytes() <= memory.psutil.virtual_memory().total
