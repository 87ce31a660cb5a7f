"""The charts of a run's cases, as matplotlib Figures."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import spearmanr

from medssl.metrics.catalogue import DICE, ECE, ENTROPY_BITS, PAVPU, UCE
from medssl.report.figures.style import INK, PAGE_WIDTH_IN, TEAL, lower_limit, styled
from medssl.report.run import PerCaseRow
from medssl.report.tables import Stat, by_case, case_mean


@styled
def dice_strip(per_case: Sequence[PerCaseRow]) -> Figure:
    """Dice of every case, one strip per structure; the bar is the mean, rings are missed cases."""
    structures = list(dict.fromkeys(row["structure"] for row in per_case))
    figure = Figure(figsize=(PAGE_WIDTH_IN, 1.0 + 0.55 * len(structures)), layout="constrained")
    axes = figure.subplots()
    for height, structure in enumerate(structures):
        rows = [row for row in per_case if row["structure"] == structure and math.isfinite(row["dice"])]
        dice = np.array([row["dice"] for row in rows])
        missed = np.array([row.get("empty") == "prediction" for row in rows], dtype=bool)
        level = height + _spread(len(rows))
        axes.plot(dice[~missed], level[~missed], "o", ms=6, color=TEAL, alpha=0.6, mew=0)
        axes.plot(dice[missed], level[missed], "o", ms=6, mfc="white", mec=TEAL)
        if dice.size:
            axes.plot([dice.mean()] * 2, [height - 0.34, height + 0.34], color=INK, lw=2, solid_capstyle="butt")
    axes.set(yticks=range(len(structures)), yticklabels=structures, ylim=(len(structures) - 0.5, -0.5), xlabel="Dice")
    lowest = lower_limit([row["dice"] for row in per_case])
    axes.set_xlim(lowest - 0.02 * (1 - lowest), 1.0 + 0.01 * (1 - lowest))
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    return figure


@styled
def entropy_against_dice(per_case: Sequence[PerCaseRow]) -> Figure:
    """Mean entropy of every case against its mean Dice, with Spearman's rank correlation."""
    cases = by_case(per_case).values()
    pairs = np.array([(case_mean(rows, ENTROPY_BITS), case_mean(rows, DICE)) for rows in cases]).reshape(-1, 2)
    entropy, dice = pairs[np.isfinite(pairs).all(axis=1)].T
    figure = Figure(figsize=(5.1, 3.4), layout="constrained")
    axes = figure.subplots()
    axes.plot(entropy, dice, "o", ms=7, color=TEAL, alpha=0.65, mew=0)
    axes.set(xlabel="mean entropy (bits per voxel)", ylabel="Dice")
    axes.margins(0.08)
    if entropy.size > 2 and np.ptp(entropy) > 0 and np.ptp(dice) > 0:
        rho = spearmanr(entropy, dice).statistic
        axes.set_title(f"Spearman ρ = {rho:.2f}, {entropy.size} cases".replace("-", "−"), loc="left")
    return figure


@styled
def calibration_strip(per_case: Sequence[PerCaseRow]) -> Figure:
    """PAvPU, UCE and ECE of every case, side by side; the bar is the mean."""
    cases = by_case(per_case).values()
    figure = Figure(figsize=(5.1, 3.4), layout="constrained")
    for axes, metric in zip(figure.subplots(1, 3), (PAVPU, UCE, ECE), strict=True):
        values = np.array([case_mean(rows, metric) for rows in cases])
        values = values[np.isfinite(values)]
        axes.plot(_spread(values.size), values, "o", ms=6, color=TEAL, alpha=0.6, mew=0)
        if values.size:
            axes.plot([-0.34, 0.34], [Stat.of(values).mean] * 2, color=INK, lw=2, solid_capstyle="butt")
        axes.set(xlim=(-0.7, 0.7), xticks=[])
        axes.set_title(metric.title)
        axes.margins(y=0.12)
        axes.locator_params(axis="y", nbins=5)
    return figure


def _spread(count: int) -> NDArray[np.float64]:
    """Offsets in [-0.22, 0.22] that keep neighbouring points apart, the same at every call."""
    return 0.22 * (2 * ((np.arange(count) * 0.618034 + 0.5) % 1) - 1)
