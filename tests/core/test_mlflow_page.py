"""The MLflow page: what it needs, and that it ends without a word."""

import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from medssl.core import mlflow_page
from medssl.core.errors import ConfigError, MedsslError
from medssl.core.mlflow_page import serve_page, tracking_store


@pytest.fixture
def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(autouse=True)
def no_server_of_others(monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


def start_instead(monkeypatch, code):
    """Let another program than MLflow be started; `port` is its first argument."""
    started = []

    def start(store, port, log):
        command = [sys.executable, "-c", code, str(port)]
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        started.append(process)
        return process

    monkeypatch.setattr(mlflow_page, "_start", start)
    return started


def test_store_of_a_folder_without_runs_is_refused_and_not_made(tmp_path):
    with pytest.raises(ConfigError, match=r"nothere: holds no mlflow.db.*--runs_dir"):
        tracking_store(tmp_path / "nothere")
    assert not (tmp_path / "nothere").exists()


def test_store_is_the_database_of_the_runs_or_the_given_server(tmp_path, monkeypatch):
    (tmp_path / "mlflow.db").touch()
    assert tracking_store(tmp_path) == f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://tracking:5000")
    assert tracking_store(tmp_path / "nothere") == "http://tracking:5000"


def test_port_in_use_is_refused_before_anything_starts(monkeypatch):
    started = start_instead(monkeypatch, "")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(ConfigError, match=r"cannot be used.*Give another one"):
            serve_page("sqlite:///x", other.getsockname()[1], print)
    assert started == []


def test_address_is_told_when_it_answers_and_ctrl_c_ends_the_server(monkeypatch, free_port, tmp_path):
    (tmp_path / "health").touch()
    answer = "http.server.test(http.server.SimpleHTTPRequestHandler, port=int(sys.argv[1]), bind='127.0.0.1')"
    started = start_instead(monkeypatch, f"import http.server, os, sys; os.chdir({str(tmp_path)!r}); {answer}")
    told = []

    def ready(address):
        told.append(address)
        assert urllib.request.urlopen(f"{address}/health").status == 200
        raise KeyboardInterrupt

    serve_page("sqlite:///x", free_port, ready)
    assert told == [f"http://127.0.0.1:{free_port}"] and started[0].returncode == -signal.SIGTERM


def test_server_that_ends_by_itself_says_why(monkeypatch, free_port):
    start_instead(monkeypatch, "raise SystemExit('the database is damaged')")
    with pytest.raises(MedsslError, match="the database is damaged"):
        serve_page("sqlite:///x", free_port, print)
