"""What a bundle's configuration calls around a training: check the data, open the run, start tracking."""

import logging
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import ignite.distributed as idist
import torch
from torch import nn

import medssl
from medssl.core.errors import error_behind
from medssl.core.flags import flag
from medssl.core.run_folder import RunFolder
from medssl.data.validate import check_cases, require_valid
from medssl.engine.provenance import command_line, executing_config, flatten, source_commit
from medssl.engine.tracking import MlflowTracker, NoTracker, Tracker, default_tracking_uri

LARGE_ON_CPU = 5_000_000  # parameters


class DataOfRun(Protocol):
    """What a run is trained on, in facts for its run.json; `dataset` is one of them."""

    def run_facts(self) -> dict[str, Any]: ...


class SplitOfRun(Protocol):
    """Who is labelled, unlabelled, validation and test."""

    @property
    def hash(self) -> str: ...

    @property
    def counts(self) -> dict[str, int]: ...

    def write(self, path: str | Path) -> None: ...


def open_run(
    path: str | Path,
    bundle: str,
    method: str,
    data: DataOfRun,
    split: SplitOfRun,
    network: nn.Module,
    seed: int,
    resume: bool | str = False,
) -> RunFolder:
    """The run's folder with run.json and split.json in place."""
    resume = flag(resume, "resume")
    parameters = sum(p.numel() for p in network.parameters())
    facts = {
        "name": Path(path).name,
        "bundle": bundle,
        "method": method,
        **data.run_facts(),
        **split.counts,
        "seed": seed,
        "split_hash": split.hash,
        "git_sha": source_commit(),
        "parameters": parameters,
        "medssl_version": medssl.__version__,
        "command": command_line(),
        "config": flatten(executing_config()),
    }
    if resume and (Path(path) / "split.json").is_file():
        split.write(Path(path) / "split.json")  # refuses another split before the run is touched
    if not torch.cuda.is_available() and parameters > LARGE_ON_CPU:
        print("No GPU was found: full size takes days here. The overlay bench.json fits a CPU.", flush=True)
    folder = RunFolder(path, resume, facts)
    if folder.is_writer:
        split.write(folder.path / "split.json")
    return folder


def check_data(cases: Sequence[dict[str, Any]], label_ids: Sequence[int] | None, runs_dir: str | Path) -> None:
    """Raise DataError if one of `cases` is bad; files that have not changed are not read again in later runs."""
    if idist.get_rank() == 0:
        print(f"checking {len(cases)} cases", flush=True)
        require_valid(check_cases(cases, label_ids, Path(runs_dir) / "data_checks.json"))


def start_tracking(
    folder: RunFolder, runs_dir: str | Path, tracking_uri: str | None = None, enabled: bool | str = True
) -> Tracker:
    """The MLflow run of `folder` (continued if the run was resumed), or a stand-in where tracking is off."""
    if not flag(enabled, "mlflow") or not folder.is_writer:
        return NoTracker()
    facts = folder.facts()
    uri = tracking_uri or default_tracking_uri(runs_dir)
    run_id = facts.get("mlflow_run_id") if facts.get("tracking_uri") == uri else None
    tracker = MlflowTracker(uri, experiment=f"medssl/{facts['bundle']}", run_name=facts["name"], run_id=run_id)
    tracker.set_tags(
        {key: facts[key] for key in ("git_sha", "split_hash", "seed", "dataset", "method", "medssl_version")}
    )
    if run_id is None:
        tracker.log_params(facts["config"])
    return tracker


def explain_errors() -> None:
    """Let an error of medssl end the process with its one clear text, not with MONAI's wrappers around it."""
    logging.getLogger("ignite").setLevel(logging.CRITICAL)
    sys.excepthook = _explain


def _explain(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    known = error_behind(error)
    if known is None:
        traceback.print_exception(kind, error, trace)
    else:
        print(f"{type(known).__name__}: {known}", file=sys.stderr)


def default_output_dir(
    bundle: str,
    dataset: str,
    labelled: int | float | None,
    seed: int,
    variant: str = "",
    lists_dir: str | Path | None = None,
) -> str:
    """`runs/<bundle>/<dataset>_<labelled>_seed<seed>`, the data set after the variant's name where that differs.

    lists_dir: of the lists that say which images are labelled; the run is then called after it, `list_<its name>`.
    """
    name = f"{variant}_{dataset}" if variant not in ("", bundle) else dataset
    labels = "preset" if labelled is None else str(labelled)
    if lists_dir is not None:
        labels = f"list_{Path(lists_dir).resolve().name}"
    return f"runs/{bundle}/{name}_{labels}_seed{seed}"
