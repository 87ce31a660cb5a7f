"""The last step of a training: its numbers and figures go to MLflow, the run is marked as finished."""

from medssl.engine.checkpoint import CheckpointStore
from medssl.engine.run_folder import RunFolder
from medssl.engine.tracking import MlflowTracker, NoTracker
from medssl.report.figures.files import write_figures
from medssl.report.runs import load_run
from medssl.report.tables import SummaryRow, summarise


def finish_run(folder: RunFolder, tracker: MlflowTracker | NoTracker) -> None:
    """Send the evaluation's numbers and files to MLflow, note where the run is tracked, mark it as finished."""
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


def finish_stage(folder: RunFolder, tracker: MlflowTracker | NoTracker) -> None:
    """End a process that trained the first stage only: a later one goes on with the run and its MLflow run.

    A run that was finished as a whole stays so.
    """
    tracker.finish()
    folder.update(tracking_uri=getattr(tracker, "tracking_uri", None), mlflow_run_id=tracker.run_id)
    folder.finish("finished" if "checkpoint" in folder.facts() else "first stage finished")


def _test_metrics(rows: list[SummaryRow]) -> dict[str, float]:
    """`test_dice_kidney` and the like from the summary's rows."""
    metrics: dict[str, float] = {}
    for row in rows:
        for name, stat in row.stats.items():
            if stat.n:
                metrics[f"test_{name}_{row.structure.replace(' ', '_')}"] = stat.mean
    return metrics
