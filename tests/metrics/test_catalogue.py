"""One table of metrics: titles, units, directions, and nothing is written that it does not know."""

import math

import pytest

from medssl.inference import evaluation, sample_curve
from medssl.metrics.catalogue import (
    ASD,
    DICE,
    ENTROPY_BITS,
    HD95,
    HD95_VOXELS,
    LABEL_ML,
    SCAN_COLUMNS,
    SCAN_METRICS,
    UCE,
    VOXEL_METRICS,
)

TEXTS = {"case", "structure", "empty"}
KNOWN = {metric.name for metric in (*SCAN_METRICS, *SCAN_COLUMNS)}


def test_every_number_that_an_evaluation_writes_is_known():
    assert set(evaluation.COLUMNS) - TEXTS == KNOWN - {metric.name for metric in VOXEL_METRICS}
    assert set(sample_curve.COLUMNS) - TEXTS - {"samples", "patch_seconds", "mode"} <= KNOWN


def test_names_are_given_once():
    assert len(KNOWN) == len(SCAN_METRICS) + len(SCAN_COLUMNS)


@pytest.mark.parametrize(
    ("metric", "title", "comparison", "better"),
    [
        (DICE, "Dice", "Dice ↑", "more"),
        (HD95, "HD95 (mm)", "95HD (mm) ↓", "less"),
        (HD95_VOXELS, "HD95 (voxels)", "95HD (voxels) ↓", "less"),
        (ASD, "ASD (mm)", "ASD (mm) ↓", "less"),
        (ENTROPY_BITS, "Entropy (bits)", "Entropy (bits)", "neither more nor less"),
        (LABEL_ML, "Label (ml)", "Label (ml)", "neither more nor less"),
    ],
)
def test_titles_have_the_unit_and_in_comparisons_what_is_better(metric, title, comparison, better):
    assert (metric.title, metric.comparison_title, metric.better) == (title, comparison, better)


def test_values_have_the_decimals_of_their_metric():
    assert [metric.text(0.123456) for metric in (DICE, HD95, UCE, LABEL_ML)] == ["0.123", "0.12", "0.1235", "0.1"]
    assert DICE.text(math.nan) == "–"


def test_percent_and_options():
    assert UCE.percent_title == "UCE (%) ↓"
    assert (HD95.option, DICE.option) == ("hd95", "dice")
