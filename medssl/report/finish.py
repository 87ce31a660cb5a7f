"""The last step of a training: its numbers and figures go to MLflow, the run is marked as finished."""

from medssl.core.checkpoint import CheckpointStore
from medssl.core.run_folder import RunFolder
from medssl.engine.tracking import Tracker
from medssl.report.figures.files import write_figures
from medssl.report.run import Run
from medssl.report.runs import load_run
from medssl.report.tables import summarise


def finish_run(folder: RunFolder, tracker: Tracker) -> None:
    """Send the evaluation's numbers and files to MLflow, note where the run is tracked, mark it as finished."""
    if not folder.is_writer:
        return
    evaluation = folder.path / "evaluation"
    checkpoints = CheckpointStore(folder.path / "checkpoints").files()
    if checkpoints:
        folder.update(checkpoint=str(checkpoints[-1].relative_to(folder.path)))
        tracker.set_tags({"checkpoint": checkpoints[-1]})
    run = load_run(folder.path)
    if run.per_case:
        tracker.log_artifact(evaluation / run.task.table, "evaluation")
        tracker.log_metrics([(0, _test_metrics(run))])
        for figure in write_figures(folder.path):
            tracker.log_artifact(figure, "figures")
    tracker.log_artifact(folder.path / "split.json")
    _close(folder, tracker, "finished")


def finish_stage(folder: RunFolder, tracker: Tracker) -> None:
    """End a process that trained the first stage only: a later one goes on with the run and its MLflow run.

    A run that was finished as a whole stays so.
    """
    if folder.is_writer:
        _close(folder, tracker, "finished" if "checkpoint" in folder.facts() else "first stage finished")


def _close(folder: RunFolder, tracker: Tracker, status: str) -> None:
    tracker.finish()
    folder.update(tracking_uri=tracker.tracking_uri, mlflow_run_id=tracker.run_id)
    folder.finish(status)


def _test_metrics(run: Run) -> dict[str, float]:
    """`test_dice_kidney`, `test_error` and the like; what was measured of all images together goes before means."""
    metrics: dict[str, float] = {}
    for row in summarise(run.per_case, run.task.metrics):
        for name, stat in row.stats.items():
            if stat.n:
                metrics[f"test_{name}_{row.structure.replace(' ', '_')}".rstrip("_")] = stat.mean
    return metrics | {f"test_{name}": value for name, value in run.measured.items() if isinstance(value, float)}
