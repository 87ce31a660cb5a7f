"""F9: an MLflow server that is down, or answers never, costs a training neither its life nor its time."""

import logging
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from medssl.engine.tracking import MlflowTracker

pytest.importorskip("mlflow")  # its seconds of import are not the server's


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")


@pytest.fixture
def closed_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


@pytest.fixture
def silent_server() -> Iterator[str]:
    """Takes connections and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        connections: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    connections.append(server.accept()[0])
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        for connection in connections:
            connection.close()


def use(tracker: MlflowTracker, tmp_path) -> float:
    """Seconds that the calls of a training take together."""
    started = time.perf_counter()
    tracker.log_params({"a": "1"})
    tracker.set_tags({"seed": 0})
    for step in range(200):
        tracker.log_metrics([(step, {"loss": 1.0})])
    tracker.log_artifact(tmp_path / "not_even_there.csv")
    return time.perf_counter() - started


@pytest.mark.parametrize("server", ["closed_port", "silent_server"])
def test_calls_return_at_once_and_one_warning_says_what_is_lost(server, request, tmp_path, caplog):
    uri = request.getfixturevalue(server)
    with caplog.at_level(logging.WARNING, logger="medssl"):
        tracker = MlflowTracker(uri, "medssl/test", "run")
        assert use(tracker, tmp_path) < 0.5
        started = time.perf_counter()
        tracker.finish(timeout_s=20)
        assert time.perf_counter() - started < 15, "the server's own time-out ends it"
        assert use(tracker, tmp_path) < 0.1
        tracker.finish()
    warnings = [record.getMessage() for record in caplog.records if record.name.startswith("medssl")]
    assert len(warnings) == 1 and uri in warnings[0] and "training goes on" in warnings[0]
    assert not tracker.alive and tracker.run_id is None


def test_finish_waits_no_longer_than_told(silent_server, tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "30")
    tracker = MlflowTracker(silent_server, "medssl/test", "run")
    use(tracker, tmp_path)
    started = time.perf_counter()
    tracker.finish(timeout_s=0.5)
    assert time.perf_counter() - started < 2
    assert "no answer within" in caplog.text


def test_server_that_dies_in_mid_run_is_noted_once(tmp_path, caplog):
    tracker = MlflowTracker(f"sqlite:///{tmp_path / 'mlflow.db'}", "medssl/test", "run")
    tracker.log_artifact(tmp_path / "missing.csv")
    tracker.log_metrics([(1, {"loss": 1.0})])
    tracker.finish()
    assert not tracker.alive and caplog.text.count("does not take the run") == 1
