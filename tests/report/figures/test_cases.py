"""The figures can be drawn from little, and leave no state behind."""

import math
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest

from medssl.report import load_run
from medssl.report.figures.cases import calibration_strip, dice_strip, entropy_against_dice
from medssl.report.figures.panels import case_panel
from medssl.report.figures.slices import load_case
from medssl.report.figures.style import figure_png
from medssl.report.figures.training import smooth, training_curves


def test_smoothing_keeps_a_constant_and_skips_what_is_not_finite():
    assert smooth([2.0] * 9, 5) == pytest.approx(np.full(9, 2.0))
    assert smooth([1.0, math.nan, 3.0], 3) == pytest.approx([1.0, 2.0, 3.0])


def test_curves_show_loss_learning_rate_and_validation(finished_run):
    labels = {axes.get_ylabel() for axes in training_curves(load_run(finished_run)).axes}
    assert labels == {"loss", "learning rate", "validation Dice"}


def test_curves_of_a_diverged_run_can_be_drawn(finished_run):
    run = load_run(finished_run)
    broken = [record | {"loss": math.nan} for record in run.history if record["kind"] == "step"]
    figure = training_curves(replace(run, history=broken))
    assert figure_png(figure, dpi=20).startswith(b"\x89PNG")


@pytest.mark.parametrize("draw", [dice_strip, entropy_against_dice, calibration_strip])
@pytest.mark.parametrize("cases", [1, 4])
def test_charts_can_be_drawn_from_one_case_and_from_missing_values(finished_run, draw, cases):
    rows = load_run(finished_run).per_case[:cases]
    blank = [{"case": row["case"], "structure": "kidney", "dice": math.nan, "empty": "both"} for row in rows]
    assert figure_png(draw(rows), dpi=20) != figure_png(draw(blank), dpi=20)


@pytest.mark.parametrize("missing", [{}, {"label": None}, {"entropy": None}])
def test_panel_has_three_rows_of_four_pictures_and_a_colour_bar(finished_run, missing):
    run = load_run(finished_run)
    figure = case_panel(replace(load_case(run, "case_a"), **missing), run.structures)

    assert len(figure.axes) == 3 * 4 + 1
    assert figure.axes[-1].get_ylim() == pytest.approx((0.0, 1.0))  # bits, log2 of two classes


def test_pictures_keep_the_proportions_of_the_body(finished_run):
    run = load_run(finished_run)
    case = load_case(run, "case_a")
    figure = case_panel(case, run.structures)
    width_in, height_in = figure.get_size_inches()
    axial, coronal = figure.axes[0], figure.axes[4 * next(row for row in (1, 2) if "coronal" in _words(figure, row))]
    for axes, (x_mm, y_mm) in {axial: (2.0, 2.0), coronal: (2.0, 4.0)}.items():
        box = axes.get_position()
        mm_per_inch_x = abs(np.diff(axes.get_xlim())[0]) * x_mm / (box.width * width_in)
        mm_per_inch_y = abs(np.diff(axes.get_ylim())[0]) * y_mm / (box.height * height_in)
        assert mm_per_inch_x == pytest.approx(mm_per_inch_y)


def test_drawing_leaves_the_callers_settings_alone(finished_run):
    before = dict(mpl.rcParams)
    dice_strip(load_run(finished_run).per_case)
    assert {key for key, value in before.items() if mpl.rcParams[key] != value} == set()


def _words(figure, row):
    return " ".join(text.get_text() for text in figure.axes[4 * row].texts)
