"""A run's folder takes one writer at a time, keeps its facts, and forgets exactly what a resumed run writes again."""

import json
import os
import signal
import time

import pytest

from medssl.core.errors import ConfigError
from medssl.core.files import FolderLock, write_text_atomically
from medssl.engine import RunFolder


def run_json(path) -> dict:
    return json.loads((path / "run.json").read_text())


def test_new_folder_gets_its_facts_and_a_status(tmp_path):
    folder = RunFolder(tmp_path / "a" / "run", facts={"seed": 3, "label_map": {1: 1}})
    assert not folder.resumed and folder.is_writer
    assert run_json(folder.path)["status"] == "running" and folder.facts()["seed"] == 3
    folder.update(checkpoint="x.pt")
    folder.finish()
    facts = run_json(folder.path)
    assert (facts["status"], facts["seed"], facts["checkpoint"]) == ("finished", 3, "x.pt")
    assert facts["started"] <= facts["finished"]


def test_folder_with_a_run_is_refused_without_resume(tmp_path):
    RunFolder(tmp_path).finish()
    for _ in range(2):  # refusing must not leave a lock behind
        with pytest.raises(ConfigError, match=r"holds a run already\. Continue it with --resume true"):
            RunFolder(tmp_path)
    assert run_json(tmp_path)["status"] == "finished"
    RunFolder(tmp_path, resume=True).finish()


def test_resume_on_an_empty_folder_starts(tmp_path):
    assert not RunFolder(tmp_path / "new", resume=True).resumed


def test_resume_keeps_the_start_and_the_mlflow_run_and_notes_what_is_asked_for_now(tmp_path):
    folder = RunFolder(tmp_path, facts={"seed": 3, "command": "first"})
    folder.update(mlflow_run_id="abc")
    started = folder.facts()["started"]
    write_text_atomically(tmp_path / "failure.json", "{}")
    folder.finish("failed")
    again = RunFolder(tmp_path, resume=True, facts={"command": "second", "new_fact": 1})
    facts = run_json(tmp_path)
    assert again.resumed and facts["status"] == "running" and "finished" not in facts
    assert (facts["command"], facts["mlflow_run_id"], facts["started"]) == ("second", "abc", started)
    assert (facts["new_fact"], facts["seed"]) == (1, 3)
    assert not (tmp_path / "failure.json").exists(), "the failure of an earlier attempt is over"


def test_history_is_appended_line_by_line(tmp_path, history):
    folder = RunFolder(tmp_path)
    folder.record("step", epoch=1, step=1, loss=0.5)
    assert history(tmp_path) == [{"kind": "step", "epoch": 1, "step": 1, "loss": 0.5}], "visible at once"
    folder.record("epoch", epoch=1, loss=0.5)
    assert [record["kind"] for record in history(tmp_path)] == ["step", "epoch"]


def test_resume_drops_later_epochs_and_a_line_cut_off_by_a_kill(tmp_path, history):
    folder = RunFolder(tmp_path)
    for epoch in (1, 2, 3):
        folder.record("step", epoch=epoch)
        folder.record("epoch", epoch=epoch)
    folder.finish("failed")
    with (tmp_path / "history.jsonl").open("a") as file:
        file.write('{"kind": "step", "epo')
    again = RunFolder(tmp_path, resume=True)
    again.forget_after(2)
    again.record("step", epoch=3)
    assert [(r["kind"], r["epoch"]) for r in history(tmp_path)] == [
        ("step", 1), ("epoch", 1), ("step", 2), ("epoch", 2), ("step", 3),
    ]  # fmt: skip


def test_records_after_forgetting_reach_the_file_that_is_there(tmp_path, history):
    folder = RunFolder(tmp_path)
    folder.record("step", epoch=1)
    folder.record("step", epoch=2)
    folder.forget_after(1)
    folder.record("step", epoch=2, again=True)
    assert [r.get("again", False) for r in history(tmp_path)] == [False, True]


def exit_code_of_child(body) -> int:
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            code = body()
        finally:
            os._exit(code)
    return os.WEXITSTATUS(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize("resume", [True, False])
def test_second_process_on_the_folder_is_refused_at_once(tmp_path, resume):
    folder = RunFolder(tmp_path)

    def second() -> int:
        try:
            RunFolder(tmp_path, resume=resume)
        except ConfigError as error:
            return 7 if f"another process (pid {os.getppid()})" in str(error) else 8
        return 0

    started = time.perf_counter()
    assert exit_code_of_child(second) == 7
    assert time.perf_counter() - started < 5
    assert run_json(tmp_path)["status"] == "running", "the first run is untouched"
    folder.finish()
    assert exit_code_of_child(lambda: 0 if RunFolder(tmp_path, resume=True).resumed else 1) == 0


def test_lock_of_a_killed_process_is_free_at_once_though_its_workers_live(tmp_path):
    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        lock = FolderLock(tmp_path)
        worker = os.fork()  # a data loader's worker inherits all open files
        if worker == 0:
            time.sleep(30)
            os._exit(0)
        os.write(told, str(worker).encode())
        time.sleep(30)
        lock.close()
        os._exit(0)
    worker = int(os.read(ready, 20))
    try:
        with pytest.raises(ConfigError, match=f"pid {pid}"):
            FolderLock(tmp_path)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        FolderLock(tmp_path).close()
    finally:
        os.kill(worker, signal.SIGKILL)


def test_closed_lock_is_free_though_a_child_lives(tmp_path):
    lock = FolderLock(tmp_path)
    pid = os.fork()
    if pid == 0:
        time.sleep(30)
        os._exit(0)
    try:
        lock.close()
        lock.close()
        FolderLock(tmp_path).close()
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_lock_is_released_by_an_error_in_its_block(tmp_path):
    with pytest.raises(ZeroDivisionError), FolderLock(tmp_path):
        _ = 1 / 0
    FolderLock(tmp_path).close()


def test_written_files_follow_the_users_umask(tmp_path):
    before = os.umask(0o077)
    try:
        write_text_atomically(tmp_path / "private.json", "{}")
    finally:
        os.umask(before)
    assert (tmp_path / "private.json").stat().st_mode & 0o777 == 0o600


def test_failed_write_leaves_the_old_text_and_no_leftovers(tmp_path, monkeypatch):
    path = tmp_path / "run.json"
    write_text_atomically(path, "old")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(OSError, match="No space left"):
            write_text_atomically(path, "new")
    assert path.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["run.json"]
