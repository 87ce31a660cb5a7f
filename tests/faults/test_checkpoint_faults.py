"""F1, F3, F4: a kill, a damaged file or a full disk never costs more than the checkpoint being written."""

import errno
import logging
import os
import random
import resource
import signal
import time

import pytest
import torch

from medssl.core import checkpoint as module
from medssl.core.checkpoint import CheckpointStore, load_tensors, save_tensors
from medssl.core.errors import CheckpointError

KILLS = 50


def state(epoch: int, size: int = 200_000) -> dict:
    return {"epoch": epoch, "weights": torch.full((size,), float(epoch))}


def is_consistent(loaded: dict) -> bool:
    return bool((loaded["weights"] == loaded["epoch"]).all())


def in_child(body) -> int:
    """Pid of a forked child that runs `body` and never returns into the test."""
    pid = os.fork()
    if pid == 0:
        torch.set_num_threads(1)  # OpenMP's threads are not there after a fork
        try:
            body()
        finally:
            os._exit(0)
    return pid


def save_for_ever(store: CheckpointStore) -> None:
    epoch = 1 + max((int(path.stem[6:]) for path in store.files()), default=0)
    while True:
        store.save(state(epoch), epoch)
        epoch += 1


def overwrite_for_ever(path) -> None:
    number = 0
    while True:
        number += 1
        save_tensors(state(number), path)


def kill_while(body, after_s: float) -> None:
    pid = in_child(body)
    time.sleep(after_s)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status), "the child ended by itself: it did not save"


def test_kill_at_any_moment_leaves_whole_checkpoints_only(tmp_path, caplog):
    store, moments = CheckpointStore(tmp_path, keep=2), random.Random(0)
    store.save(state(0), 0)
    newest, longest_s = 0, 0.05
    for _ in range(KILLS):
        kill_while(lambda: save_for_ever(store), after_s=moments.uniform(0.001, longest_s))
        for path in store.files():
            assert is_consistent(load_tensors(path)), f"{path} is not what one save wrote"
        loaded, _ = store.load_latest()
        assert loaded["epoch"] >= newest, "a checkpoint that was there is gone"
        if loaded["epoch"] == newest:  # killed before its first save: a busy machine needs longer
            longest_s = min(2.0, 1.2 * longest_s)
        newest = loaded["epoch"]
    assert newest > KILLS / 5, "hardly any save came through: the kills prove nothing"
    assert not caplog.records
    store.save(state(newest + 1), newest + 1)
    assert not list(tmp_path.glob(".*")), "leftovers of killed writers fill the disk"


def test_kill_while_a_file_is_replaced_leaves_the_old_or_the_new_one(tmp_path):
    path, moments = tmp_path / "model.pt", random.Random(1)
    save_tensors(state(0), path)
    for _ in range(KILLS):
        kill_while(lambda: overwrite_for_ever(path), after_s=moments.uniform(0.001, 0.03))
        assert is_consistent(load_tensors(path))


def test_replaced_file_is_valid_in_the_moment_before_the_rename(tmp_path, monkeypatch):
    path = tmp_path / "model.pt"
    save_tensors(state(1), path)

    def die(self, target):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        original = type(path).replace
        patch.setattr(type(path), "replace", lambda self, to: die(self, to) if to == path else original(self, to))
        with pytest.raises(KeyboardInterrupt):
            save_tensors(state(2), path)
    assert load_tensors(path)["epoch"] == 1


def positions(size: int) -> dict[str, int]:
    return {"start": 0, "header": 40, "middle": size // 2, "directory": size - 120, "end": size - 1}


@pytest.mark.parametrize("region", ["start", "header", "middle", "directory", "end"])
def test_flipped_byte_is_found_and_the_one_before_taken(tmp_path, caplog, region):
    store = CheckpointStore(tmp_path)
    for epoch in (1, 2):
        store.save(state(epoch, size=2000), epoch)
    damaged = store.files()[-1]
    content = bytearray(damaged.read_bytes())
    content[positions(len(content))[region]] ^= 0x01
    damaged.write_bytes(content)
    started = time.perf_counter()
    with pytest.raises(CheckpointError, match=r"epoch_0002\.pt: damaged"):
        load_tensors(damaged)
    with caplog.at_level(logging.WARNING):
        loaded, path = store.load_latest()
    assert time.perf_counter() - started < 2
    assert path.name == "epoch_0001.pt" and loaded["epoch"] == 1
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "epoch_0002.pt" in caplog.text and "before it" in caplog.text


@pytest.mark.parametrize("kept_part", [0.0, 0.01, 0.5, 0.99])
@pytest.mark.parametrize("with_digest", [True, False])
def test_truncated_file_is_found_and_the_one_before_taken(tmp_path, kept_part, with_digest):
    store = CheckpointStore(tmp_path)
    for epoch in (1, 2):
        store.save(state(epoch, size=2000), epoch)
    damaged = store.files()[-1]
    damaged.write_bytes(damaged.read_bytes()[: int(kept_part * damaged.stat().st_size)])
    if not with_digest:
        damaged.with_name(damaged.name + ".sha256").unlink()
    with pytest.raises(CheckpointError, match=r"epoch_0002\.pt"):
        load_tensors(damaged)
    assert store.load_latest()[0]["epoch"] == 1


def test_none_whole_is_an_error_that_names_them_all(tmp_path):
    store = CheckpointStore(tmp_path)
    for epoch in (1, 2):
        store.save(state(epoch, size=2000), epoch).write_bytes(b"PK\x03\x04 no longer")
    with pytest.raises(CheckpointError) as caught:
        store.load_latest()
    assert "epoch_0001.pt" in str(caught.value) and "epoch_0002.pt" in str(caught.value)


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), RuntimeError("unexpected pos 64 vs 0")]
)
def test_full_disk_stops_with_a_message_and_keeps_the_old_checkpoints(tmp_path, monkeypatch, error):
    store = CheckpointStore(tmp_path, keep=1)
    store.save(state(1, size=2000), 1)

    def half(content, path):
        path.write_bytes(b"PK\x03\x04" + bytes(1000))
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(module.torch, "save", half)
        with pytest.raises(CheckpointError, match=r"epoch_0002\.pt: could not be written .* Free disk space"):
            store.save(state(2), 2)
    assert store.load_latest()[0]["epoch"] == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["epoch_0001.pt", "epoch_0001.pt.sha256"]


def test_real_file_limit_in_a_child_keeps_the_old_checkpoints(tmp_path):
    store = CheckpointStore(tmp_path, keep=1)
    store.save(state(1, size=2000), 1)

    def save_too_much() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the write fails with an error instead
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            store.save(state(2), 2)
        except CheckpointError as error:
            os._exit(3 if "epoch_0002.pt: could not be written" in str(error) else 4)
        os._exit(5)

    _, status = os.waitpid(in_child(save_too_much), 0)
    assert os.WEXITSTATUS(status) == 3, "expected a CheckpointError that names the file"
    assert store.load_latest()[0]["epoch"] == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["epoch_0001.pt", "epoch_0001.pt.sha256"]
