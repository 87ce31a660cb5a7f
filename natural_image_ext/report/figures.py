"""The charts of a classification run, as matplotlib Figures."""

import math

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from medssl.report.figures.style import INK, MUTED, PAGE_WIDTH_IN, PALE_TEAL, TEAL, styled
from medssl.report.figures.training import draw_smoothed, series
from medssl.report.run import Run
from natural_image_ext.inference.evaluation import BINS

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
