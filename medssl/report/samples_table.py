"""The means of samples.csv for the terminal: a line for each number T of Monte Carlo samples."""

from pathlib import Path

from rich import box
from rich.table import Table

from medssl.report.figures.sample_curves import PATCH_TIME, TIME, mean_curve, read_samples, sampling_mode
from medssl.report.run import Task


def samples_table(run_folder: Path, task: Task) -> Table:
    """Mean over the cases of what the task measures, and of the time, at each T. Raises DataError."""
    rows = read_samples(run_folder, task)
    mode = sampling_mode(run_folder)
    title = f"Means over the {task.cases}" + (f", mode {mode}" if mode else "")
    table = Table(title=title, title_justify="left", box=box.SIMPLE)
    times = {TIME: f"s per {task.case}"}
    if rows and PATCH_TIME in rows[0]:
        times[PATCH_TIME] = "s per patch"
    columns = {metric.name: metric.title for metric in task.sampled} | times
    table.add_column("T", justify="right")
    for title in columns.values():
        table.add_column(title, justify="right")
    curves = [mean_curve(rows, name) for name in columns]
    for number, count in enumerate(curves[0][0]):
        table.add_row(f"{count:g}", *(f"{means[number]:.4g}" for _, means in curves))
    return table
