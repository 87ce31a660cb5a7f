"""Files appear whole or not at all, and a folder has one writer."""

import errno
import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from medssl.core.errors import ConfigError, DataError, MedsslError, error_behind
from medssl.core.files import (
    FolderLock,
    write_atomically,
    write_bytes_atomically,
    write_text_atomically,
    written_together,
)


def test_text_and_bytes_arrive_in_new_folders(tmp_path):
    write_text_atomically(tmp_path / "a" / "b" / "text.txt", "Größe\n")
    write_bytes_atomically(tmp_path / "a" / "raw", b"\x00\xff")
    assert (tmp_path / "a" / "b" / "text.txt").read_bytes() == "Größe\n".encode()
    assert (tmp_path / "a" / "raw").read_bytes() == b"\x00\xff"
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == ["b", "raw"]


def test_files_of_one_thing_appear_together_over_the_old_ones(tmp_path):
    (tmp_path / "a.txt").write_text("old")
    with written_together(tmp_path, "case") as staging:
        (staging / "a.txt").write_text("new")
        (staging / "a.json").write_text("{}")
        assert (tmp_path / "a.txt").read_text() == "old" and not (tmp_path / "a.json").exists()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.txt": "new", "a.json": "{}"}


@pytest.mark.parametrize("failure", [OSError(5, "Input/output error"), KeyboardInterrupt(), ValueError("no")])
def test_nothing_of_files_together_stays_after_a_failure(failure, tmp_path):
    with pytest.raises(type(failure)), written_together(tmp_path, "case") as staging:
        (staging / "a.txt").write_text("new")
        raise failure
    assert list(tmp_path.iterdir()) == []


def test_full_disk_is_told_with_what_is_free_and_the_way_out(tmp_path):
    text = r"no space left for the files of case \(\d+ MB are free on that disk\)\. None of them .* Free disk space"
    with pytest.raises(MedsslError, match=text), written_together(tmp_path, "case") as staging:
        (staging / "a.txt").write_text("new")
        raise OSError(errno.ENOSPC, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_record_is_the_last_file_that_appears(tmp_path, monkeypatch):
    moved = []
    replace = Path.replace
    monkeypatch.setattr(Path, "replace", lambda path, target: moved.append(path.name) or replace(path, target))
    with written_together(tmp_path, "case") as staging:
        for name in ("a.json", "b.nii.gz", "c.nii.gz"):
            (staging / name).write_text("")
    assert moved == ["b.nii.gz", "c.nii.gz", "a.json"]


@pytest.mark.parametrize("failure", [OSError("disk full"), KeyboardInterrupt()])
def test_failed_write_leaves_the_old_file_and_nothing_else(failure, tmp_path):
    path = tmp_path / "model.pt"
    write_text_atomically(path, "old")

    def write(partial: Path) -> None:
        partial.write_text("half of the n")
        raise failure

    with pytest.raises(type(failure)):
        write_atomically(path, write)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["model.pt"]


def test_reader_never_meets_half_a_file(tmp_path):
    path = tmp_path / "state.json"
    write_text_atomically(path, "old")

    def write(partial: Path) -> None:
        partial.write_text("new")
        assert path.read_text() == "old"
        assert partial.parent == path.parent  # a rename is whole within one file system only

    write_atomically(path, write)
    assert path.read_text() == "new"


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o027, 0o640)])
def test_written_file_has_the_rights_the_user_gives_to_new_files(umask, mode, tmp_path):
    before = os.umask(umask)
    try:
        write_text_atomically(tmp_path / "a", "x")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == mode


def test_long_names_can_be_written(tmp_path):
    path = tmp_path / ("x" * 250)
    write_text_atomically(path, "x")
    assert path.read_text() == "x"


def test_second_writer_is_told_who_holds_the_folder(tmp_path):
    with FolderLock(tmp_path / "run"):
        with pytest.raises(ConfigError, match=rf"run: another process \(pid {os.getpid()}\)"):
            FolderLock(tmp_path / "run")
        FolderLock(tmp_path / "run", ".other").close()
        FolderLock(tmp_path / "elsewhere").close()
    FolderLock(tmp_path / "run").close()


def _hold_and_die(folder: str, held: "multiprocessing.synchronize.Event") -> None:
    lock = FolderLock(folder)
    held.set()
    os._exit(lock is None)


def test_lock_ends_with_its_process(tmp_path):
    context = multiprocessing.get_context("fork")
    held = context.Event()
    process = context.Process(target=_hold_and_die, args=(str(tmp_path), held))
    process.start()
    process.join(timeout=30)
    assert held.is_set()
    FolderLock(tmp_path).close()


def _hold_fork_and_die(folder: str, worker: "multiprocessing.sharedctypes.Synchronized[int]") -> None:
    lock = FolderLock(folder)
    child = os.fork()
    if child == 0:
        signal.pause()
    worker.value = child
    os._exit(lock is None)


def test_lock_does_not_live_on_in_a_forked_worker(tmp_path):
    context = multiprocessing.get_context("fork")
    worker = context.Value("i", 0)
    process = context.Process(target=_hold_fork_and_die, args=(str(tmp_path), worker))
    process.start()
    process.join()  # a timeout would wait for the worker too
    try:
        for _ in range(50):  # the worker lets go as soon as it runs
            try:
                FolderLock(tmp_path).close()
                break
            except ConfigError:
                time.sleep(0.1)
        else:
            pytest.fail("the worker holds its dead parent's lock")
        os.kill(worker.value, 0)  # it is still there
    finally:
        os.kill(worker.value, signal.SIGKILL)


def test_error_behind_finds_what_a_library_wrapped():
    with pytest.raises(RuntimeError) as caught:
        try:
            raise DataError("scan.nii.gz: empty")
        except DataError as error:
            raise RuntimeError("applying transform") from error
    assert str(error_behind(caught.value)) == "scan.nii.gz: empty"
    assert error_behind(ValueError("something else")) is None
