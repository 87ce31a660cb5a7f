"""MLflow gets the configuration, tags, losses and files of a run, in SQLite where nothing else is asked for."""

import fcntl
import inspect
import os
import signal
import sqlite3
import time
from pathlib import Path

import pytest

from medssl.bundle.session import start_tracking
from medssl.engine import RunFolder
from medssl.engine.tracking import MlflowTracker, NoTracker, Tracker, _one_at_a_time, default_tracking_uri

FACTS = {
    "name": "smoke", "bundle": "mcdropout_unet3d", "git_sha": "abc", "split_hash": "def", "seed": 3,
    "dataset": "phantom", "method": "supervised", "medssl_version": "0.1.0",
}  # fmt: skip
CONFIG = {f"key::{i}": str(i) for i in range(150)} | {"cache_dir": "", "long": "x" * 9000}


@pytest.fixture(scope="module")
def tracked(tmp_path_factory) -> tuple[str, str]:
    """Tracking URI and id of a finished run with all there can be in it."""
    root = tmp_path_factory.mktemp("tracked")
    table = root / "per_case.csv"
    table.write_text("case,dice\na,0.5\n")
    tracker = MlflowTracker(f"sqlite:///{root / 'mlflow.db'}", "medssl/test", "smoke")
    tracker.log_params(CONFIG)
    tracker.set_tags({"seed": 3, "checkpoint": table})
    tracker.log_metrics([(step, {"loss": 1 / step, "lr": 0.1}) for step in range(1, 1201)])
    tracker.log_metrics([(2, {"epoch_loss": 0.75}), (2, {"validation_dice": float("nan")})])
    tracker.log_artifact(table, "evaluation")
    tracker.finish()
    assert tracker.alive and tracker.run_id
    return tracker.tracking_uri, tracker.run_id


def client_of(uri: str):
    from mlflow import MlflowClient

    return MlflowClient(uri)


def test_run_has_its_params_tags_metrics_and_files(tracked):
    client = client_of(tracked[0])
    run = client.get_run(tracked[1])
    assert run.info.status == "FINISHED" and run.info.run_name == "smoke"
    assert run.data.params["key::149"] == "149" and run.data.params["cache_dir"] == ""
    assert run.data.params["long"] == "x" * 500 and len(run.data.params) == 152
    assert run.data.tags["seed"] == "3" and run.data.tags["checkpoint"].endswith("per_case.csv")
    losses = client.get_metric_history(tracked[1], "loss")
    assert [m.step for m in losses] == list(range(1, 1201)) and losses[3].value == 0.25
    assert run.data.metrics["epoch_loss"] == 0.75
    files = client.list_artifacts(tracked[1], "evaluation")
    assert [file.path for file in files] == ["evaluation/per_case.csv"]
    assert (Path(tracked[0].removeprefix("sqlite:///")).parent / "mlflow_artifacts").is_dir()


def test_earlier_run_is_continued_and_is_running_again_meanwhile(tracked):
    uri, run_id = tracked
    client = client_of(uri)
    client.set_terminated(run_id, "FAILED")
    tracker = MlflowTracker(uri, "medssl/test", "smoke", run_id=run_id)
    tracker.log_metrics([(1201, {"loss": 0.5})])
    tracker.finish()
    assert tracker.run_id == run_id
    run = client.get_run(run_id)
    assert run.info.status == "FINISHED" and run.data.metrics["loss"] == 0.5
    assert len(client.search_runs([run.info.experiment_id])) == 1


def test_run_that_is_gone_is_replaced_by_a_new_one(tracked):
    tracker = MlflowTracker(tracked[0], "medssl/test", "smoke", run_id="0" * 32)
    tracker.log_metrics([(1, {"loss": 0.25})])
    tracker.finish()
    assert tracker.alive and tracker.run_id not in (None, "0" * 32)
    client = client_of(tracked[0])
    assert client.get_run(tracker.run_id).data.metrics["loss"] == 0.25
    client.delete_run(tracker.run_id)


def test_resumed_folder_continues_its_mlflow_run_and_a_new_one_does_not(tmp_path):
    folder = RunFolder(tmp_path / "run", facts={**FACTS, "config": {"a": "1"}})
    first = start_tracking(folder, tmp_path)
    first.finish("KILLED")
    folder.update(tracking_uri=first.tracking_uri, mlflow_run_id=first.run_id)
    folder.finish("failed")
    second = start_tracking(RunFolder(tmp_path / "run", resume=True), tmp_path)
    second.finish()
    third = start_tracking(RunFolder(tmp_path / "run2", facts={**FACTS, "config": {"a": "2"}}), tmp_path)
    third.finish()
    assert second.run_id == first.run_id != third.run_id
    run = client_of(first.tracking_uri).get_run(first.run_id)
    assert run.data.params == {"a": "1"} and run.data.tags["split_hash"] == "def"
    assert (tmp_path / "mlflow.db").is_file()
    with sqlite3.connect(tmp_path / "mlflow.db") as store:
        assert store.execute("select name from experiments where name like 'medssl/%'").fetchall() == [
            ("medssl/mcdropout_unet3d",)
        ]


def test_tracking_uri_of_the_environment_is_honoured(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert default_tracking_uri(tmp_path) == f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/elsewhere.db")
    tracker = start_tracking(RunFolder(tmp_path / "run", facts={**FACTS, "config": {}}), tmp_path)
    tracker.finish()
    assert tracker.tracking_uri.endswith("elsewhere.db") and (tmp_path / "elsewhere.db").is_file()
    asked_for = f"sqlite:///{tmp_path}/asked_for.db"
    explicit = start_tracking(RunFolder(tmp_path / "run2", facts={**FACTS, "config": {}}), tmp_path, asked_for)
    explicit.finish()
    assert explicit.tracking_uri == asked_for


def test_store_is_free_again_though_a_worker_forked_meanwhile_lives(tmp_path):
    with _one_at_a_time(tmp_path / "mlflow.db"):
        worker = os.fork()
        if worker == 0:
            time.sleep(30)
            os._exit(0)
    try:
        with (tmp_path / "mlflow.db.lock").open("a") as other:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.kill(worker, signal.SIGKILL)
        os.waitpid(worker, 0)


def test_tracking_that_is_off_takes_every_call(tmp_path):
    folder = RunFolder(tmp_path, facts=FACTS)
    tracker = start_tracking(folder, tmp_path, enabled=False)
    assert isinstance(tracker, NoTracker) and tracker.run_id is None
    tracker.log_metrics([(1, {"loss": 1.0})])
    tracker.finish("FAILED")
    folder.is_writer = False
    assert isinstance(start_tracking(folder, tmp_path), NoTracker), "only the first process tracks"


@pytest.mark.parametrize("tracker", [MlflowTracker, NoTracker])
def test_trackers_have_the_same_methods_with_the_same_arguments(tracker):
    def methods(kind):
        public = {name: value for name, value in vars(kind).items() if not name.startswith("_")}
        return {name: inspect.signature(value) for name, value in public.items() if inspect.isfunction(value)}

    assert methods(tracker) == methods(Tracker) and "log_metrics" in methods(tracker)


def test_misspelt_call_of_tracking_that_is_off_fails():
    with pytest.raises(AttributeError, match="log_metric"):
        NoTracker().log_metric(1)


def test_thread_rests_between_stages_and_the_run_goes_on(tmp_path):
    tracker = MlflowTracker(f"sqlite:///{tmp_path / 'rest.db'}", "medssl/rest", "two stages")
    tracker.log_metrics([(1, {"first": 0.5})])
    tracker.rest()
    assert not tracker._thread.is_alive()
    first = tracker.run_id
    tracker.log_metrics([(2, {"second": 0.25})])
    tracker.finish()
    run = client_of(tracker.tracking_uri).get_run(first)
    assert tracker.run_id == first and run.info.status == "FINISHED"
    assert run.data.metrics == {"first": 0.5, "second": 0.25}


def test_tracker_that_has_not_begun_may_rest(tmp_path):
    tracker = MlflowTracker(f"sqlite:///{tmp_path / 'none.db'}", "medssl/rest", "nothing")
    tracker.rest()
    assert tracker.alive and not (tmp_path / "none.db").exists()
