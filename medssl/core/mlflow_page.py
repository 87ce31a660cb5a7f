"""MLflow's page of the runs, served on this machine until a user stops it."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from medssl.core.errors import ConfigError, MedsslError
from medssl.core.progress import work

_HOST = "127.0.0.1"
_PATIENCE_SECONDS = 120.0


def tracking_store(runs_dir: str | Path) -> str:
    """The store that holds the runs of `runs_dir`; ConfigError if there is none, for MLflow would make an empty one."""
    given = os.environ.get("MLFLOW_TRACKING_URI")
    if given:
        return given
    database = Path(runs_dir).resolve() / "mlflow.db"
    if not database.is_file():
        raise ConfigError(f"{runs_dir}: holds no mlflow.db. Expected the folder of the runs: give it as --runs_dir.")
    return f"sqlite:///{database}"


def serve_page(store: str, port: int, when_ready: Callable[[str], None]) -> None:
    """Serve the page until Ctrl-C; `when_ready` gets its address as soon as it answers."""
    _require_free(port)
    with tempfile.TemporaryFile() as log:
        server = _start(store, port, log.fileno())
        try:
            _wait_until_it_answers(server, port)
            when_ready(f"http://{_HOST}:{port}")
            server.wait()
        except KeyboardInterrupt:
            return
        finally:
            _end(server)
        log.seek(0)
        last_lines = log.read().decode(errors="replace").strip().splitlines()[-5:]
        raise MedsslError("MLflow ended by itself. Its last lines: " + " / ".join(last_lines))


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
        except (OSError, OverflowError) as error:
            raise ConfigError(f"--port {port}: cannot be used ({error}). Give another one.") from error


def _start(store: str, port: int, log: int) -> subprocess.Popen:
    """MLflow in a session of its own, so that Ctrl-C reaches it through `_end` alone and it prints no traceback."""
    command = [sys.executable, "-m", "mlflow", "ui", "--backend-store-uri", store, "--workers", "1"]
    return subprocess.Popen(  # noqa: S603  (our own interpreter)
        [*command, "--host", _HOST, "--port", str(port)],
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        # the job workers of MLflow take a core each, and the page needs none of them
        env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
    )


def _wait_until_it_answers(server: subprocess.Popen, port: int) -> None:
    last_moment = time.monotonic() + _PATIENCE_SECONDS
    with work("starting MLflow"):
        while server.poll() is None and not _answers(port):
            if time.monotonic() > last_moment:
                raise MedsslError(f"MLflow did not answer for {_PATIENCE_SECONDS:.0f} s. Try again.")
            time.sleep(0.2)


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://{_HOST}:{port}/health", timeout=2):
            return True
    except (urllib.error.URLError, OSError):
        return False


def _end(server: subprocess.Popen) -> None:
    """End the server and all that it started."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(server.pid, sign)
            server.wait(timeout=5)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue
