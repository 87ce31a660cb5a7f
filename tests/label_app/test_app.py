"""What the app does with a prediction, and when its server ends."""

import sys
import time
from types import SimpleNamespace

import psutil
import pytest

pytest.importorskip("monailabel", reason="needs pip install 'medssl[label]'")
import medssl.label_app.shim.sitecustomize  # noqa: F401, I001
from monailabel.utils.async_tasks import utils

from medssl.core.errors import DataError
from medssl.label_app.app import ReviewApp
from medssl.label_app.queue import WaitingViewers


@pytest.fixture
def long_tasks(monkeypatch, tmp_path):
    """Tasks of MONAI Label that take a minute, in a process and one below it, and write down that they began."""
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho $$ >> {tmp_path}/began\nsleep 60 &\nwait\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for name in ("background_tasks", "background_processes", "background_executors"):
        getattr(utils, name).clear()
    yield tmp_path / "began"
    for name in ("background_tasks", "background_processes", "background_executors"):
        getattr(utils, name).clear()


@pytest.mark.parametrize("method", ["train", "scoring", "batch_infer"])
def test_no_task_outlives_its_server(long_tasks, method):
    for _ in range(2):
        utils.run_background_task({}, method)
    wait_for(lambda: utils.processes(method) and long_tasks.is_file() and long_tasks.read_text())
    (started,) = utils.processes(method).values()
    wait_for(lambda: psutil.Process(started.pid).children())
    processes = [psutil.Process(started.pid), *psutil.Process(started.pid).children()]
    ReviewApp.on_shutdown(SimpleNamespace(_scoring=None))
    wait_for(lambda: not any(alive(process) for process in processes))
    utils.background_executors[method].shutdown(wait=True)
    assert len(long_tasks.read_text().splitlines()) == 1  # the one that waited has not begun


def test_a_server_without_tasks_ends(long_tasks):
    ReviewApp.on_shutdown(SimpleNamespace(_scoring=None))


@pytest.fixture
def predicting():
    """An app whose one model answers at once; `stored` has the tags of what it stored, `viewers` who waits."""
    stored, viewers = [], WaitingViewers()
    store = SimpleNamespace(save_label=lambda study, file, tag, info: stored.append(tag))
    return SimpleNamespace(
        _infers={"m": lambda request: ("file", {"id": request["image"]})},
        _proposals=None,
        model=SimpleNamespace(name="m"),
        datastore=lambda: store,
        viewers=viewers,
        stored=stored,
    )


@pytest.mark.parametrize("tag", ["final", "uncertainty", "outgrown", "../x"])
def test_prediction_is_not_stored_as_a_review_or_over_what_the_model_said(predicting, tag):
    with pytest.raises(DataError, match="tag"):
        ReviewApp.infer(predicting, {"model": "m", "image": "a", "save_label": True, "label_tag": tag})
    assert predicting.stored == []


def test_prediction_is_stored_under_another_tag_if_asked_for(predicting):
    for wish in ({"save_label": True, "label_tag": "kept"}, {"save_label": True}, {"label_tag": "kept"}):
        assert ReviewApp.infer(predicting, {"model": "m", "image": "a", **wish})["params"] == {"id": "a"}
    assert predicting.stored == ["kept"]


def test_no_study_is_scored_while_a_proposal_is_made_for_a_viewer(predicting):
    waited = []
    predicting._proposals = SimpleNamespace(store=lambda study: waited.append(bool(predicting.viewers)))
    ReviewApp.infer(predicting, {"model": "m", "image": "a"})
    assert waited == [True] and not predicting.viewers


def alive(process):
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it ended between the two questions
        return False


def wait_for(holds, seconds=20.0):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)
