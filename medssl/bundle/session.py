"""What surrounds a training: its folder with run.json and split.json, its tracking, its device and its rhythm."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn

import medssl
from medssl.bundle.command import current_command
from medssl.bundle.provenance import command_line, flatten, source_commit
from medssl.core.flags import flag
from medssl.core.options import option
from medssl.core.progress import say
from medssl.core.run_folder import RunFolder
from medssl.engine.tracking import MlflowTracker, NoTracker, Tracker, default_tracking_uri
from medssl.methods.facts import MethodFacts


@dataclass(frozen=True)
class SessionOptions:
    """Where a training writes, how it is tracked, and how often it looks up from its work."""

    output_dir: str | None = option(
        None, "the run's folder; default: runs/<bundle>/<data>_<labels>_seed<n>", place=True
    )
    runs_dir: str = option(
        "runs", "the folder of all runs; it holds MLflow's file and the memory of data checks", place=True
    )
    resume: bool = option(False, "continue the run in output_dir from its last checkpoint", place=True)
    mlflow: bool = option(True, "track the run with MLflow", place=True)
    tracking_uri: str | None = option(
        None, "address of MLflow's server; default: an SQLite file in runs_dir", place=True
    )
    title: str | None = option(None, "the run's name in tables; default: the name of its method", incidental=True)
    val_interval: int = option(10, "epochs from one validation to the next", at_least=1)
    save_interval: int = option(1, "epochs from one checkpoint to the next", at_least=1, incidental=True)
    num_workers: int = option(2, "processes that load data", at_least=0, incidental=True)
    amp: bool | None = option(None, "compute in mixed precision; default: true on a GPU, else false")
    debug: bool = option(False, "show the whole traceback of an error", place=True)


class DataOfRun(Protocol):
    """What a run is trained on, in facts for its run.json; `dataset` is one of them."""

    def run_facts(self) -> dict[str, Any]: ...


class SplitOfRun(Protocol):
    """Who is labelled, unlabelled, validation and test."""

    @property
    def hash(self) -> str: ...

    @property
    def counts(self) -> dict[str, int]: ...

    @property
    def origin(self) -> dict[str, Any]: ...

    def without_label(self, role: str) -> list[str]: ...

    def write(self, path: str | Path) -> None: ...


class Session:
    """A run's folder, its tracker and what all of its stages share.

    method: what is trained: anything with `facts`. places: keys in which runs may differ and still be the same
    experiment. method_options: a dataclass, noted in run.json. The folder is made, and locked, when it is first asked
    for.
    """

    def __init__(
        self,
        bundle: str,
        method: Any,
        data: DataOfRun,
        split: SplitOfRun,
        network: nn.Module,
        device: torch.device | str,
        options: SessionOptions,
        seed: int = 0,
        run_name: str = "run",
        places: Sequence[str] = (),
        method_options: Any = None,
    ) -> None:
        self.bundle, self.data, self.split, self.network, self.seed = bundle, data, split, network, seed
        self.device, self.options, self.run_name, self.places = torch.device(device), options, run_name, list(places)
        self.method_facts: MethodFacts = method.facts
        self.method_options = {} if method_options is None else asdict(method_options)

    @property
    def title(self) -> str:
        """The run's name in tables."""
        return self.options.title or self.method_facts.title

    @property
    def amp(self) -> bool:
        return torch.cuda.is_available() if self.options.amp is None else self.options.amp

    @property
    def path(self) -> Path:
        """Where the run lies, or will lie."""
        return Path(self.options.output_dir or f"runs/{self.bundle}/{self.run_name}")

    @cached_property
    def folder(self) -> RunFolder:
        return open_run(self.path, self._facts(), self.split, self.network, self.options.resume)

    @cached_property
    def tracker(self) -> Tracker:
        return start_tracking(self.folder, self.options.runs_dir, self.options.tracking_uri, self.options.mlflow)

    def _facts(self) -> dict[str, Any]:
        return {
            "bundle": self.bundle,
            "method": self.title,
            "method_facts": self.method_facts.to_json(),
            "method_options": self.method_options,
            "keys": {"place": self.places},
            **self.data.run_facts(),
            "seed": self.seed,
        }


def open_run(
    path: str | Path, facts: Mapping[str, Any], split: SplitOfRun, network: nn.Module, resume: bool | str = False
) -> RunFolder:
    """The run's folder with run.json and split.json in place. facts: of the bundle, the method and the data."""
    resume = flag(resume, "resume")
    parameters = sum(p.numel() for p in network.parameters())
    command = current_command()
    fold_of_split: dict[str, Any] = {key: split.origin[key] for key in ("folds", "fold") if key in split.origin}
    all_facts = {
        "name": Path(path).name,
        **facts,
        **split.counts,
        **fold_of_split,
        "split_hash": split.hash,
        "git_sha": source_commit(),
        "parameters": parameters,
        "medssl_version": medssl.__version__,
        "command": command_line(),
        "bundle_root": None if command is None or command.bundle_root is None else str(command.bundle_root.resolve()),
        "config": {} if command is None else flatten(command.config),
    }
    if resume and not (Path(path) / "run.json").is_file():
        say(f"nothing to resume in {path}: a new run begins")
    if resume and (Path(path) / "split.json").is_file():
        split.write(Path(path) / "split.json")  # refuses another split before the run is touched
    folder = RunFolder(path, resume, all_facts)
    if folder.is_writer:
        split.write(folder.path / "split.json")
    return folder


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


def default_run_name(
    bundle: str,
    dataset: str,
    labelled: int | float | None,
    seed: int,
    variant: str = "",
    lists_dir: str | Path | None = None,
) -> str:
    """`<dataset>_<labelled>_seed<seed>`, the data set after the variant's name where that is not the bundle's.

    lists_dir: of the lists that say which images are labelled; the run is then called after it, `list_<its name>`.
    """
    name = f"{variant}_{dataset}" if variant not in ("", bundle) else dataset
    labels = "preset" if labelled is None else str(labelled)
    if lists_dir is not None:
        labels = f"list_{Path(lists_dir).resolve().name}"
    return f"{name}_{labels}_seed{seed}"
