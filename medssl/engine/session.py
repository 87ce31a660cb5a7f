"""What a bundle's configuration calls around a training: open the run, start tracking, close both."""

import logging
import sys
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any

import ignite.distributed as idist
from torch import nn

import medssl
from medssl.data.cases import Split
from medssl.data.datasets import DataSource
from medssl.data.pipeline import Pipeline
from medssl.data.validate import check_cases, require_valid
from medssl.engine.checkpoint import CheckpointStore
from medssl.engine.provenance import command_line, executing_config, flatten, source_commit
from medssl.engine.run_folder import RunFolder
from medssl.engine.tracking import MlflowTracker, NoTracker, default_tracking_uri
from medssl.errors import error_behind


def open_run(
    path: str | Path,
    bundle: str,
    method: str,
    source: DataSource,
    split: Split,
    pipeline: Pipeline,
    network: nn.Module,
    seed: int,
    resume: bool = False,
) -> RunFolder:
    """The run's folder with run.json and split.json in place."""
    target = source.facts.target
    facts = {
        "name": Path(path).name,
        "bundle": bundle,
        "method": method,
        "dataset": source.facts.name,
        **split.counts,
        "seed": seed,
        "split_hash": split.hash,
        "git_sha": source_commit(),
        "paper_crop": pipeline.paper_crop,
        "window": source.facts.window,
        "label_map": target.label_map,
        "structures": target.structures,
        "parameters": sum(p.numel() for p in network.parameters()),
        "medssl_version": medssl.__version__,
        "command": command_line(),
        "config": flatten(executing_config()),
    }
    if resume and (Path(path) / "split.json").is_file():
        split.write(Path(path) / "split.json")  # refuses another split before the run is touched
    folder = RunFolder(path, resume, facts)
    if folder.is_writer:
        split.write(folder.path / "split.json")
    return folder


def check_data(split: Split, source: DataSource, output_dir: str | Path) -> None:
    """Raise DataError if a case of the split is bad; unchanged files are not read again in later runs."""
    if idist.get_rank() == 0:
        remembered = Path(output_dir).parent / "data_checks.json"
        require_valid(check_cases(split.cases, source.facts.label_ids, remembered))


def start_tracking(
    folder: RunFolder, tracking_uri: str | None = None, enabled: bool = True
) -> MlflowTracker | NoTracker:
    """The MLflow run of `folder` (continued if the run was resumed), or a stand-in where tracking is off."""
    if not enabled or not folder.is_writer:
        return NoTracker()
    facts = folder.facts()
    uri = tracking_uri or default_tracking_uri(folder.path.parent)
    run_id = facts.get("mlflow_run_id") if facts.get("tracking_uri") == uri else None
    tracker = MlflowTracker(uri, experiment=f"medssl/{facts['bundle']}", run_name=facts["name"], run_id=run_id)
    tracker.set_tags(
        {key: facts[key] for key in ("git_sha", "split_hash", "seed", "dataset", "method", "medssl_version")}
    )
    if run_id is None:
        tracker.log_params(facts["config"])
    return tracker


def finish_run(folder: RunFolder, tracker: MlflowTracker | NoTracker) -> None:
    """Send the evaluation's numbers and files to MLflow, note where the run is tracked, mark it as finished."""
    # imported here: reporting stands downstream of training
    from medssl.report import load_run, summarise  # noqa: PLC0415
    from medssl.report.figure_files import write_figures  # noqa: PLC0415

    if not folder.is_writer:
        return
    evaluation = folder.path / "evaluation"
    checkpoints = CheckpointStore(folder.path / "checkpoints").files()
    if checkpoints:
        folder.update(checkpoint=str(checkpoints[-1].relative_to(folder.path)))
        tracker.set_tags({"checkpoint": checkpoints[-1]})
    if (evaluation / "per_case.csv").is_file():
        tracker.log_artifact(evaluation / "per_case.csv", "evaluation")
        tracker.log_metrics([(0, _test_metrics(summarise(load_run(folder.path).per_case)))])
        for figure in write_figures(folder.path):
            tracker.log_artifact(figure, "figures")
    tracker.log_artifact(folder.path / "split.json")
    tracker.finish()
    folder.update(tracking_uri=getattr(tracker, "tracking_uri", None), mlflow_run_id=tracker.run_id)
    folder.finish()


def _test_metrics(rows: list[Any]) -> dict[str, float]:
    """`test_dice_kidney` and the like from the summary's rows."""
    metrics: dict[str, float] = {}
    for row in rows:
        for name, stat in row.stats.items():
            if stat.n:
                metrics[f"test_{name}_{row.structure.replace(' ', '_')}"] = stat.mean
    return metrics


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


def default_output_dir(bundle: str, dataset: str, labelled: int | None, seed: int) -> str:
    """`runs/<bundle>/<dataset>_<labelled>_seed<seed>`."""
    return f"runs/{bundle}/{dataset}_{'preset' if labelled is None else labelled}_seed{seed}"
