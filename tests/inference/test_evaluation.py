"""The table of cases is what the metrics say, and metrics that contradict each other stop the evaluation."""

import csv
import json
from types import SimpleNamespace

import nibabel as nib
import numpy as np
import pytest

from medssl.core.errors import ConfigError, MedsslError
from medssl.data import Pipeline, facts_from_json
from medssl.data.volumes import write_nifti
from medssl.inference import Evaluation, MCDropoutInferer, Predictor
from medssl.inference.evaluation import require_consistent_overlaps
from medssl.inference.predictor import Prediction
from medssl.inference.scoring import ScoringOptions
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


class HalfWrong:
    """Stands in for a predictor: a label of one structure, predicted with random errors and entropies."""

    structures = {1: "bright"}  # noqa: RUF012
    measures_latent = False

    def __init__(self, affine, slice_size=None, window=None):
        self.affine = affine
        target = SimpleNamespace(label_map={1: 1})
        facts = SimpleNamespace(target=target, window=window)
        self.pipeline = SimpleNamespace(facts=facts, geometry=SimpleNamespace(slice_size=slice_size, depth=None))

    def settings(self):
        return {}

    def __call__(self, case):
        rng = np.random.default_rng(3)
        shape = nib.load(case["label"]).shape
        foreground = np.clip(np.asarray(nib.load(case["label"]).dataobj) * 0.6 + rng.random(shape) * 0.6, 0, 1)
        entropy = rng.random(shape)
        return Prediction(case["id"], np.stack([1 - foreground, foreground]), entropy, entropy, self.affine)


@pytest.fixture
def ball_case(tmp_path):
    """A ball in a body in air, (16, 12, 8) voxels of 1 x 2 x 3 mm, stored with slices first."""
    x, y, z = np.indices((16, 12, 8))
    label = (x - 8) ** 2 + (y - 6) ** 2 + (z - 4) ** 2 < 9
    body = (x > 2) & (x < 14) & (y > 1) & (y < 11)
    scans = {"image": np.where(body, 40, -1000), "label": label}
    for name, voxels in scans.items():
        write_nifti(tmp_path / f"{name}.nii.gz", voxels, np.diag([1.0, 2, 3, 1]), np.int16)
    case = {"id": "ball", "role": "test", **{name: str(tmp_path / f"{name}.nii.gz") for name in scans}}
    return case, label, body


def brute_pavpu(correct, entropy, counted, window=4, threshold=0.4):
    good = windows = 0
    for start in np.ndindex(*(-(-length // window) for length in correct.shape)):
        box = tuple(slice(window * first, window * first + window) for first in start)
        chosen = counted[box]
        if chosen.any():
            accurate = correct[box][chosen].mean() > 0.5
            certain = entropy[box][chosen].mean() < threshold
            windows += 1
            good += accurate == certain
    return good / windows


@pytest.mark.parametrize("region", ["scan", "body", "structures"])
def test_pavpu_counts_in_the_stated_region_as_brute_force_does(ball_case, tmp_path, region):
    case, label, body = ball_case
    predictor = HalfWrong(np.diag([1.0, 2, 3, 1]), window=(-100, 250))
    found = predictor(case)
    places = np.argwhere(label) * [1, 2, 3]
    near = np.array(
        [np.linalg.norm(places - np.array(place) * [1, 2, 3], axis=1).min() <= 4 for place in np.ndindex(label.shape)]
    ).reshape(label.shape)
    counted = {"scan": np.ones_like(body), "body": body, "structures": near}[region]
    expected = brute_pavpu(found.segmentation == label, found.entropy, counted, threshold=0.5)
    evaluation = Evaluation(
        predictor, [case], tmp_path / "out", pavpu_threshold_bits=0.5, pavpu_region=region, pavpu_distance_mm=4
    )
    (row,) = evaluation.run()
    assert row["pavpu"] == pytest.approx(expected)
    settings = json.loads((tmp_path / "out" / "settings.json").read_text())
    assert (settings["pavpu_region"], settings["pavpu_distance_mm"]) == (region, 4.0)


def test_evaluation_again_counts_where_the_one_before_did_unless_told_otherwise(ball_case, tmp_path):
    predictor = HalfWrong(np.diag([1.0, 2, 3, 1]), window=(-100, 250))
    first = Evaluation(
        predictor, [ball_case[0]], tmp_path / "evaluation", pavpu_region="structures", pavpu_distance_mm=3
    )
    first.run()
    for folder in ("evaluation", "evaluation_validation"):
        again = Evaluation(predictor, [ball_case[0]], tmp_path / folder)
        assert again.options == ScoringOptions("structures", 3.0, False)
    assert Evaluation(predictor, [], tmp_path / "evaluation", pavpu_region="scan").options.pavpu_region == "scan"
    assert Evaluation(predictor, [], tmp_path / "elsewhere" / "evaluation").options == ScoringOptions()
    with pytest.raises(ConfigError, match="pavpu_region 'air' is unknown"):
        _ = Evaluation(predictor, [], tmp_path, pavpu_region="air").options


@pytest.mark.parametrize("slice_size", [None, (32, 6)])
def test_distances_in_voxels_are_those_of_the_resized_grid(ball_case, tmp_path, slice_size):
    case, label, _ = ball_case
    turned = np.diag([1.0, 2, 3, 1])[:, [1, 0, 2, 3]]  # the first axis of the file is from back to front
    predictor = HalfWrong(turned, slice_size=slice_size)
    (row,) = Evaluation(predictor, [case], tmp_path / "out", voxel_distances="true").run()
    lengths = (1.0, 1.0, 1.0) if slice_size is None else (6 / 16, 32 / 12, 1.0)
    expected = evaluate_masks(predictor(case).segmentation == 1, label, lengths)
    for name in ("hd95", "asd", "assd"):
        assert row[f"{name}_voxels"] == pytest.approx(expected[name])
    in_mm = evaluate_masks(predictor(case).segmentation == 1, label, (2.0, 1.0, 3.0))
    assert row["hd95_mm"] == pytest.approx(in_mm["hd95"])
    (stored,) = csv.DictReader((tmp_path / "out" / "per_case.csv").open())
    assert float(stored["assd_voxels"]) == pytest.approx(expected["assd"], abs=1e-5)
    assert "hd95_voxels" not in Evaluation(predictor, [case], tmp_path / "plain").run()[0]
