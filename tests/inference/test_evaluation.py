"""The table of cases is what the metrics say, and metrics that contradict each other stop the evaluation."""

import csv
import json

import nibabel as nib
import numpy as np
import pytest

from medssl.core.errors import MedsslError
from medssl.data import Pipeline, facts_from_json
from medssl.data.volumes import write_nifti
from medssl.inference import Evaluation, MCDropoutInferer, Predictor
from medssl.inference.evaluation import require_consistent_overlaps
from medssl.metrics import evaluate_masks
from medssl.networks import MCDropoutUNet3D


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


def test_rows_and_settings_are_stored_before_a_contradiction_is_told(tmp_path, monkeypatch):
    scans = {"image": np.arange(16**3).reshape(16, 16, 16) % 250, "label": np.eye(16)[..., None] * np.ones(16)}
    for name, voxels in scans.items():
        write_nifti(tmp_path / f"{name}.nii.gz", voxels, np.eye(4), np.int16)
    case = {"id": "a", "role": "test", **{name: str(tmp_path / f"{name}.nii.gz") for name in ("image", "label")}}
    sizes = {"window": [0, 250], "slice_size": None, "region_size": None, "patch_size": [16, 16, 16]}
    facts = facts_from_json("folder", **sizes, label_map={"1": 1}, structures={"1": "bright"})
    predictor = Predictor(
        MCDropoutUNet3D(1, 2, widths=(4, 8)), Pipeline(facts), MCDropoutInferer((16, 16, 16), (16, 16, 16), samples=0)
    )
    wrong = {"dice": 0.9, "jaccard": 0.5, "hd95": 1.0, "asd": 1.0, "assd": 1.0}
    monkeypatch.setattr("medssl.inference.scoring.evaluate_masks", lambda *masks: wrong)
    with pytest.raises(MedsslError, match="contradict"):
        Evaluation(predictor, [case], tmp_path / "evaluation").run()
    (row,) = csv.DictReader((tmp_path / "evaluation" / "per_case.csv").open())
    assert (row["case"], float(row["dice"]), float(row["jaccard"])) == ("a", 0.9, 0.5)
    assert json.loads((tmp_path / "evaluation" / "settings.json").read_text())["n_cases"] == 1


def test_no_cases_is_an_error_not_a_perfect_score():
    with pytest.raises(MedsslError, match="no case"):
        require_consistent_overlaps([])
