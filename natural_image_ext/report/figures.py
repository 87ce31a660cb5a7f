"""The charts of a classification run, as matplotlib Figures."""

import math
from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from medssl.core.errors import ConfigError, DataError
from medssl.metrics.catalogue import Metric
from medssl.report.figures.style import INK, MUTED, PAGE_WIDTH_IN, PALE_TEAL, TEAL, styled
from medssl.report.figures.training import draw_smoothed, series
from medssl.report.run import Run
from natural_image_ext.inference.evaluation import BINS
from natural_image_ext.metrics import MEAN_UNCERTAINTY, PICTURE_ACCURACY

MOST_NAMES = 30  # more would cover each other


@styled
def class_uncertainty(run: Run) -> Figure:
    """Accuracy of every class against its mean uncertainty, with Spearman's rank correlation."""
    classes: dict[str, dict[str, float]] = run.measured["classes"]
    unsure = np.array([values["mean_uncertainty_nats"] for values in classes.values()])
    accuracy = np.array([values["accuracy"] for values in classes.values()])
    figure = Figure(figsize=(5.1, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(unsure, accuracy, "o", ms=6, color=TEAL, alpha=0.7, mew=0)
    if len(classes) <= MOST_NAMES:
        for name, x, y in zip(classes, unsure, accuracy, strict=True):
            axes.annotate(name, (x, y), (4, 3), textcoords="offset points", fontsize=8, color=MUTED)
    axes.set(xlabel="mean uncertainty (nats)", ylabel="accuracy")
    axes.margins(0.14)
    if len(classes) > 2 and np.ptp(unsure) > 0 and np.ptp(accuracy) > 0:
        rho = spearmanr(unsure, accuracy).statistic
        axes.set_title(f"Spearman ρ = {rho:.2f}, {len(classes)} classes".replace("-", "−"), loc="left")
    return figure


@styled
def class_uncertainty_by_labels(runs: Sequence[Run]) -> Figure:
    """Mean uncertainty and accuracy of every class, a line for each number of labels (thesis, figure 4.2).

    runs: evaluated runs of one data set and one method with several numbers of labels; runs that differ in their seed
    alone are averaged. Classes are in the order of their uncertainty with the fewest labels. Raises ConfigError for
    runs that cannot stand in one plot, DataError for one without evaluation.
    """
    by_labels = _runs_by_labels(runs)
    least = min(by_labels)
    unsure = {number: _mean_of_classes(by_labels[number], MEAN_UNCERTAINTY) for number in by_labels}
    names = sorted(unsure[least], key=lambda name: -unsure[least][name])
    figure = Figure(figsize=(PAGE_WIDTH_IN, 4.6), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    colours = mpl.colormaps["viridis"](np.linspace(0, 0.85, len(by_labels)))
    for (number, runs_of_number), colour in zip(by_labels.items(), colours, strict=True):
        accuracy = _mean_of_classes(runs_of_number, PICTURE_ACCURACY)
        label = f"{number} labels"
        for axes, values in ((upper, unsure[number]), (lower, accuracy)):
            heights = [values.get(name, math.nan) for name in names]
            axes.plot(range(len(names)), heights, "-o", ms=4, lw=1.4, mew=0, color=colour, label=label)
    upper.set(ylabel="mean uncertainty (nats)")
    upper.legend(loc="upper right", ncols=len(by_labels))
    lower.set(ylabel="accuracy")
    if len(names) <= MOST_NAMES:
        lower.set_xticks(range(len(names)), names, rotation=45, ha="right")
    else:
        lower.set(xlabel="class, the most uncertain first")
    return figure


def _runs_by_labels(runs: Sequence[Run]) -> dict[int, list[Run]]:
    """The runs of each number of labels, fewest first."""
    kinds = sorted({(str(run.facts["dataset"]), run.method) for run in runs})
    if len(kinds) != 1:
        listed = "; ".join(f"{dataset}, {method}" for dataset, method in kinds) or "none"
        raise ConfigError(f"runs of one data set and one method are needed for this figure, given: {listed}.")
    groups: dict[int, list[Run]] = {}
    for run in sorted(runs, key=lambda run: int(run.facts["labelled"])):
        if not run.measured.get("classes"):
            raise DataError(f"{run.folder}: no evaluation of its classes. Evaluate the run first.")
        groups.setdefault(int(run.facts["labelled"]), []).append(run)
    return groups


def _mean_of_classes(runs: Sequence[Run], metric: Metric) -> dict[str, float]:
    """The metric of every class, mean over the runs that have the class."""
    values: dict[str, list[float]] = {}
    for run in runs:
        for name, measured in run.measured["classes"].items():
            values.setdefault(name, []).append(measured[metric.name])
    return {name: float(np.mean(of_class)) for name, of_class in values.items()}


@styled
def calibration(run: Run) -> Figure:
    """Error of the pictures in bins of their uncertainty as a share of its largest value; their number beside it."""
    largest = math.log(len(run.facts["classes"]))
    shares = np.array([row["uncertainty_nats"] for row in run.per_case]) / largest
    wrong = np.array([row["error"] for row in run.per_case])
    edges = np.linspace(0, 1, BINS + 1)
    counts, _ = np.histogram(shares.clip(0, 1), edges)
    errors, _ = np.histogram(shares.clip(0, 1), edges, weights=wrong)
    figure = Figure(figsize=(PAGE_WIDTH_IN, 3.1), layout="constrained")
    left, right = figure.subplots(1, 2)
    filled = counts > 0
    left.bar(edges[:-1][filled], errors[filled] / counts[filled], 1 / BINS, align="edge", color=PALE_TEAL, ec="white")
    left.plot([0, 1], [0, 1], color=INK, lw=1.2, ls=(0, (4, 2)))
    left.set(xlim=(0, 1), ylim=(0, 1), xlabel="uncertainty (share of log C)", ylabel="error")
    right.bar(edges[:-1], counts, 1 / BINS, align="edge", color=PALE_TEAL, ec="white")
    right.set(xlim=(0, 1), xlabel="uncertainty (share of log C)", ylabel="pictures")
    return figure


@styled
def accepted_share(run: Run) -> Figure:
    """Share of accepted pseudo-labels over the steps."""
    figure = Figure(figsize=(PAGE_WIDTH_IN, 2.3), layout="constrained")
    axes = figure.subplots()
    draw_smoothed(axes, *series(run.records("step"), "accepted"))
    axes.set(xlabel="step", ylabel="accepted", ylim=(-0.02, 1.02))
    return figure
