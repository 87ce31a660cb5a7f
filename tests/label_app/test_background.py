"""What requests bring into the processes of tasks: nothing but what medssl's tasks read, in whatever shape it comes."""

import io
import json
from types import SimpleNamespace

import pytest

pytest.importorskip("monailabel", reason="needs pip install 'medssl[label]'")
import medssl.label_app.shim.sitecustomize  # noqa: F401, I001
from fastapi import Depends, FastAPI
from fastapi.testclient import TestClient
from monailabel.endpoints import batch_infer, scoring, session, train
from monailabel.interfaces.tasks.batch_infer import BatchInferImageType
from monailabel.utils.async_tasks import task as async_task
from monailabel.utils.async_tasks import utils as async_utils
from monailabel.utils.sessions import Sessions

from medssl.core.errors import DataError
from medssl.label_app import background
from medssl.label_app.background import guard_tasks, task_request
from medssl.label_app.edge import EXPLAINED, check_request, explain


class Process:
    """A process that has ended at once; `started` has the command and environment of all."""

    started: list

    def __init__(self, command, env, **_):
        self.returncode, self.stdout = 0, io.StringIO()
        self.started.append((command, env))

    def poll(self):
        return 0


@pytest.fixture
def started(monkeypatch, tmp_path):
    """MONAI Label's endpoints with a made-up app behind them; the processes that they have started."""
    app = SimpleNamespace(
        info=lambda: {"trainers": {"m": {}}, "scoring": {"uncertainty": {}}},
        bundle_path=lambda model: None,
        sessions=lambda: Sessions(str(tmp_path / "sessions")),
    )
    for module in (async_task, background, session, train, scoring):
        monkeypatch.setattr(module, "app_instance", lambda: app)
    for module, name in ((async_utils, "run_background_task"), (async_task, "run_background_task")):
        monkeypatch.setattr(module, name, background._start)
    for module in (train, scoring):
        monkeypatch.setattr(module, "run", module.run)
    for name in ("background_tasks", "background_processes", "background_executors"):
        monkeypatch.setattr(async_utils, name, {})
    monkeypatch.setattr(Process, "started", [], raising=False)
    monkeypatch.setattr(async_utils.subprocess, "Popen", Process)
    monkeypatch.setenv("PYTHONPATH", "ours")
    guard_tasks(train, scoring)
    yield Process.started
    for executor in async_utils.background_executors.values():
        executor.shutdown()


@pytest.fixture
def client(started):
    app = FastAPI(dependencies=[Depends(check_request)])
    for kind in EXPLAINED:
        app.add_exception_handler(kind, explain)
    for part in (train, scoring, batch_infer, session):
        app.include_router(part.router)
    return TestClient(app, raise_server_exceptions=False)


def finish():
    """Wait for the tasks that were begun."""
    for executor in async_utils.background_executors.values():
        executor.shutdown(wait=True)
    async_utils.background_executors.clear()


@pytest.mark.parametrize("path", ["/train/", "/train/m", "/scoring/", "/scoring/uncertainty", "/batch/infer/m"])
@pytest.mark.parametrize(
    "own",
    [
        {"bundle_path": "evil"},
        [["bundle_path", "evil"]],
        [["model", "m"], ["bundle_path", "evil"]],
        [{"bundle_path": 0, "evil": 0}],  # of which dict.update makes bundle_path=evil
        [["gpus", "x\0"]],
        {"a": {"b": [["bundle_path", "evil"]]}},
    ],
)
def test_code_and_environment_are_refused_in_any_shape(client, started, path, own):
    for name in ("m", "uncertainty"):
        answer = client.post(path, json={name: own})
        assert answer.status_code == 400, answer.text
    finish()
    assert started == []


@pytest.mark.parametrize("path", ["/train/", "/scoring/"])
@pytest.mark.parametrize("own", [[{"gpus": 0, "evil": 0}], ["ab"], "ab", 3, [["max_epochs", 1]]])
def test_parameters_of_a_model_that_are_no_object_are_refused(client, started, path, own):
    assert client.post(path, json={"m": own, "uncertainty": own}).status_code == 422
    finish()
    assert started == []


def test_request_that_got_past_every_check_brings_nothing_into_the_process(started, tmp_path):
    everything = {"model": "m", "max_epochs": 2, "bundle_path": str(tmp_path), "gpus": "0,1", "x": [1], "device": "cpu"}
    async_task.AsyncTask.run("train", request=dict(everything))
    async_utils.run_background_task(dict(everything), "train")
    finish()
    assert len(started) == 2
    for command, environment in started:
        assert environment["PYTHONPATH"] == "ours" and environment["CUDA_VISIBLE_DEVICES"] == "0,1"
        assert json.loads(command[-1]) == {"model": "m", "max_epochs": 2, "gpus": "all"}


def test_what_viewers_ask_for_is_started(client, started):
    assert client.post("/train/", json={"m": {"max_epochs": 1}, "client_id": "user-1"}).status_code == 200
    assert client.post("/scoring/uncertainty").status_code == 200
    assert client.post("/batch/infer/m?images=unlabeled").status_code == 200
    finish()
    requests = [json.loads(command[-1]) for command, _ in started]
    assert {"model": "m", "max_epochs": 1, "gpus": "all"} in requests and {
        "method": "uncertainty",
        "gpus": "all",
    } in requests
    assert {"model": "m", "images": "unlabeled", "gpus": "all", "save_label": True, "label_tag": "original"} in requests


@pytest.mark.parametrize(
    "wrong", [{"images": ["../x"]}, {"images": [["a"]]}, {"model": ["a"]}, {"model": {"a": 1}}, {"gpus": "x"}]
)
def test_values_are_names_and_numbers(wrong):
    with pytest.raises(DataError, match=next(iter(wrong))):
        task_request(wrong, "batch_infer")


@pytest.mark.parametrize("tag", ["final", "uncertainty", "outgrown"])
def test_predictions_of_many_are_no_reviews(client, started, tag):
    assert client.post("/batch/infer/m", json={"label_tag": tag}).status_code == 422
    finish()
    assert started == [] and task_request({"images": BatchInferImageType.IMAGES_ALL}, "batch_infer")


@pytest.mark.parametrize(
    ("name", "status"),
    [
        *((name, 400) for name in ("pydicom.py", "x.pth", "x.so", "x.zip", "meta.info", "__init__.pyc", ".nii.gz.py")),
        *((name, 200) for name in ("x.nii.gz", "x.NRRD", "x.mha", "IM0001", "1.2.840.1.dcm", "MR.1.2.840.7")),
    ],
)
def test_only_files_that_may_be_scans_are_kept_for_a_session(client, tmp_path, monkeypatch, name, status):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    files = [("files", (name, b"x")), ("files", ("b.dcm", b"x"))]
    assert client.put("/session/", files=files).status_code == status
    assert bool(list(tmp_path.rglob(name))) == (status == 200)
