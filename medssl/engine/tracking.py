"""MLflow without risk: a background thread talks to the server, and a training never waits for it or dies of it."""

import contextlib
import fcntl
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # importing MLflow takes seconds: the background thread does it
    from mlflow import MlflowClient

logger = logging.getLogger(__name__)
_PARAMS_PER_CALL, _METRICS_PER_CALL, _LONGEST_VALUE = 100, 1000, 500


def default_tracking_uri(runs_dir: str | Path = "runs") -> str:
    """MLFLOW_TRACKING_URI if it is set, else an SQLite file `mlflow.db` in `runs_dir`."""
    given = os.environ.get("MLFLOW_TRACKING_URI")
    return given or f"sqlite:///{Path(runs_dir).resolve() / 'mlflow.db'}"


class Tracker(Protocol):
    """What a training tells of itself while it runs. No call may fail or be waited for but `rest` and `finish`."""

    @property
    def run_id(self) -> str | None:
        """Names the run; None before there is one."""

    @property
    def tracking_uri(self) -> str | None:
        """Where the run is kept."""

    def log_params(self, params: dict[str, str]) -> None:
        """The configuration, key by key."""

    def set_tags(self, tags: dict[str, Any]) -> None:
        """What the run is found by."""

    def log_metrics(self, rows: list[tuple[int, dict[str, float]]]) -> None:
        """(step, {name: value}) rows."""

    def log_artifact(self, path: str | Path, folder: str | None = None) -> None:
        """A file, in a folder of the run's."""

    def rest(self, timeout_s: float = 60.0) -> None:
        """Between two stages."""

    def finish(self, status: str = "FINISHED", timeout_s: float = 60.0) -> None:
        """At the end of the run."""


class MlflowTracker:
    """One MLflow run. Every call returns at once; the first failure ends tracking with one warning.

    What is logged before the first metrics waits for them.

    The local history of the run is complete in any case. `run_id` continues an earlier run.
    """

    def __init__(self, tracking_uri: str, experiment: str, run_name: str, run_id: str | None = None) -> None:
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
        self.tracking_uri, self.run_id = tracking_uri, run_id
        self.experiment, self.run_name = experiment, run_name
        self.alive = True
        self._tasks: queue.Queue[Callable[[MlflowClient, str], Any] | None] = queue.Queue()
        self._thread = self._new_thread()

    def log_params(self, params: dict[str, str]) -> None:
        self._submit(lambda client, run: _log_params(client, run, params))

    def set_tags(self, tags: dict[str, Any]) -> None:
        self._submit(lambda client, run: [client.set_tag(run, key, str(value)) for key, value in tags.items()])

    def log_metrics(self, rows: list[tuple[int, dict[str, float]]]) -> None:
        """Log (step, {name: value}) rows."""
        self._start()
        now_ms, rows = int(time.time() * 1000), list(rows)
        self._submit(lambda client, run: _log_metrics(client, run, rows, now_ms))

    def log_artifact(self, path: str | Path, folder: str | None = None) -> None:
        self._submit(lambda client, run: client.log_artifact(run, str(path), folder))

    def rest(self, timeout_s: float = 60.0) -> None:
        """Send what is left, waiting at most `timeout_s`, and stop the thread until the next metrics.

        For the time between two stages: workers of the next one's data loader are forked best without a thread.
        """
        if self._thread.ident is not None and self.alive:
            self._tasks.put(None)
            self._thread.join(timeout_s)
            if self._thread.is_alive():
                self._stop(TimeoutError(f"no answer within {timeout_s:.0f} s"))
            else:
                self._thread = self._new_thread()

    def finish(self, status: str = "FINISHED", timeout_s: float = 60.0) -> None:
        """Send what is left, waiting at most `timeout_s`, and close the MLflow run."""
        self._start()
        self._submit(lambda client, run: client.set_terminated(run, status))
        self._tasks.put(None)
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            self._stop(TimeoutError(f"no answer within {timeout_s:.0f} s"))

    def _new_thread(self) -> threading.Thread:
        return threading.Thread(target=self._work, name="mlflow", daemon=True)

    def _start(self) -> None:
        """Start the thread, not before the first metrics: by then data loaders have forked their workers."""
        if self._thread.ident is None:
            self._thread.start()

    def _submit(self, task: Callable[["MlflowClient", str], Any]) -> None:
        if self.alive:
            self._tasks.put(task)

    def _work(self) -> None:
        try:
            from mlflow import MlflowClient  # noqa: PLC0415  (takes seconds, see above)

            with _one_at_a_time(self._sqlite_file()):
                client = MlflowClient(self.tracking_uri)
                self.run_id = self._open_run(client)
            while (task := self._tasks.get()) is not None:
                task(client, self.run_id)
        except Exception as error:
            self._stop(error)

    def _open_run(self, client: "MlflowClient") -> str:
        """The id of a run that is running: the earlier one if it is still there."""
        from mlflow.exceptions import MlflowException  # noqa: PLC0415

        if self.run_id is not None:
            with contextlib.suppress(MlflowException):
                client.update_run(self.run_id, status="RUNNING")
                return self.run_id
        return self._create_run(client)

    def _create_run(self, client: "MlflowClient") -> str:
        known = client.get_experiment_by_name(self.experiment)
        if known is None:
            file = self._sqlite_file()
            beside = str(file.parent / "mlflow_artifacts") if file else None
            experiment_id = client.create_experiment(self.experiment, artifact_location=beside)
        else:
            experiment_id = known.experiment_id
        return client.create_run(experiment_id, run_name=self.run_name).info.run_id

    def _sqlite_file(self) -> Path | None:
        path = self.tracking_uri.removeprefix("sqlite:///")
        return Path(path) if path != self.tracking_uri else None

    def _stop(self, error: Exception) -> None:
        if self.alive:
            self.alive = False
            logger.warning(
                "MLflow at %s does not take the run (%s: %s); training goes on, the history in the run's folder is "
                "complete.",
                self.tracking_uri,
                type(error).__name__,
                str(error).splitlines()[0] if str(error) else "",
            )


@contextlib.contextmanager
def _one_at_a_time(sqlite_file: Path | None) -> Iterator[None]:
    """Let one process at a time create or migrate an SQLite store: MLflow's own migration is not safe for two."""
    if sqlite_file is None:
        yield
        return
    sqlite_file.parent.mkdir(parents=True, exist_ok=True)
    with sqlite_file.with_name(sqlite_file.name + ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)  # closing is not enough: data loader workers may have inherited the file


def _log_params(client: "MlflowClient", run_id: str, params: dict[str, str]) -> None:
    from mlflow.entities import Param  # noqa: PLC0415

    entries = [Param(key[:250], str(value)[:_LONGEST_VALUE]) for key, value in params.items()]
    for start in range(0, len(entries), _PARAMS_PER_CALL):
        client.log_batch(run_id, params=entries[start : start + _PARAMS_PER_CALL])


def _log_metrics(client: "MlflowClient", run_id: str, rows: list[tuple[int, dict[str, float]]], now_ms: int) -> None:
    from mlflow.entities import Metric  # noqa: PLC0415

    entries = [Metric(name, value, now_ms, step) for step, values in rows for name, value in values.items()]
    for start in range(0, len(entries), _METRICS_PER_CALL):
        client.log_batch(run_id, metrics=entries[start : start + _METRICS_PER_CALL])


class NoTracker:
    """Stands in for MlflowTracker where tracking is off or in all processes but the first: every call does nothing."""

    run_id: str | None = None
    tracking_uri: str | None = None

    def log_params(self, params: dict[str, str]) -> None:
        pass

    def set_tags(self, tags: dict[str, Any]) -> None:
        pass

    def log_metrics(self, rows: list[tuple[int, dict[str, float]]]) -> None:
        pass

    def log_artifact(self, path: str | Path, folder: str | None = None) -> None:
        pass

    def rest(self, timeout_s: float = 60.0) -> None:
        pass

    def finish(self, status: str = "FINISHED", timeout_s: float = 60.0) -> None:
        pass
