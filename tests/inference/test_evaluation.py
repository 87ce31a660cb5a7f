"""The table of cases is what the metrics say, and metrics that contradict each other stop the evaluation."""

import csv
import json

import nibabel as nib
import numpy as np
import pytest

from medssl.core.errors import MedsslError
from medssl.inference.evaluation import require_consistent_overlaps
from medssl.metrics import evaluate_masks


def test_table_agrees_with_the_stored_predictions(trained_run):
    split = json.loads((trained_run / "split.json").read_text())
    cases = {case["id"]: case for case in split["cases"]}
    for row in csv.DictReader((trained_run / "evaluation" / "per_case.csv").open()):
        label = nib.load(cases[row["case"]]["label"])
        seg = nib.load(trained_run / "evaluation" / "predictions" / f"{row['case']}_seg.nii.gz").get_fdata() == 1
        truth = label.get_fdata() > 0  # kidney and lesion are one structure by default
        expected = evaluate_masks(seg, truth, label.header.get_zooms())
        assert float(row["dice"]) == pytest.approx(expected["dice"], abs=1e-6)
        assert float(row["hd95_mm"]) == pytest.approx(expected["hd95"], abs=1e-3)
        voxel_ml = float(np.prod(label.header.get_zooms())) / 1000
        assert float(row["label_ml"]) == pytest.approx(truth.sum() * voxel_ml, rel=1e-4)
        assert 0 <= float(row["pavpu"]) <= 1 and 0 <= float(row["mean_entropy_bits"]) <= 1


def test_settings_say_how_it_was_evaluated(trained_run):
    settings = json.loads((trained_run / "evaluation" / "settings.json").read_text())
    assert settings["samples"] == 2 and settings["stride"] == [32, 32, 16] and settings["n_cases"] == 3
    assert settings["pavpu_window"] == 4 and settings["pavpu_threshold_bits"] == 0.4


def test_contradicting_means_are_refused():
    require_consistent_overlaps([{"dice": 0.8, "jaccard": 0.8 / 1.2}, {"dice": 0.5, "jaccard": 0.5 / 1.5}])
    with pytest.raises(MedsslError, match="contradict"):
        require_consistent_overlaps([{"dice": 0.891, "jaccard": 0.793}])


def test_no_cases_is_an_error_not_a_perfect_score():
    with pytest.raises(MedsslError, match="no case"):
        require_consistent_overlaps([])
