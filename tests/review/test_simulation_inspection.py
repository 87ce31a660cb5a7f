"""Errors found against work: curves against plain counting, gains with intervals, files of the command."""

import csv
import itertools
import json

import numpy as np
import pytest

from medssl.core.errors import DataError
from medssl.data.volumes import write_nifti
from medssl.review.simulation import case_curves, discovery_curve, inspect_runs
from medssl.review.simulation.discovery import ORDERS, UNITS, contour
from medssl.review.simulation.inspection import write_inspections

SPACING = (1.0, 1.0, 2.0)


def test_curve_counts_the_errors_of_what_was_inspected():
    curve = discovery_curve(np.array([0.0, 3.0, 1.0]), np.array([0.1, 0.2, 0.9]))
    assert curve.inspected.tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert curve.found.tolist() == pytest.approx([0, 0.25, 1, 1])
    assert curve.area == pytest.approx((0.125 + 0.625 + 1) / 3)
    assert curve.at(np.array([0.5])) == pytest.approx(0.625)


def test_units_of_equal_priority_count_as_the_mean_over_their_orders():
    errors, priority = np.array([2.0, 0.0, 1.0, 5.0]), np.array([1, 1, 1, 0])
    areas = []
    for order in itertools.permutations(range(3)):
        broken = np.array([*(3 - place for place in np.argsort(order)), 0.0])
        areas.append(discovery_curve(errors, broken).area)
    assert discovery_curve(errors, priority).area == pytest.approx(np.mean(areas))
    assert discovery_curve(errors, np.zeros(4)).area == pytest.approx(0.5)


def test_no_order_beats_the_oracle_and_a_case_without_errors_has_no_curve():
    rng = np.random.default_rng(0)
    errors = rng.integers(0, 5, 20).astype(float)
    best = discovery_curve(errors, errors).area
    assert all(discovery_curve(errors, rng.random(20)).area <= best for _ in range(50))
    assert np.isnan(discovery_curve(np.zeros(3), np.arange(3)).area)


@pytest.fixture
def case():
    """A label, and a prediction that lacks a part of it where the entropy is high."""
    label = np.zeros((10, 12, 8), dtype=np.uint8)
    label[2:8, 3:9, 1:7] = 1
    prediction = label.copy()
    prediction[2:8, 3:9, 5:7] = 0
    entropy = np.where(prediction != label, 0.9, 0.1).astype(np.float32)
    entropy[label == 0] = 0.0
    return prediction, entropy, label


def test_perfect_uncertainty_is_the_oracle_of_voxels(case):
    prediction, entropy, label = case
    curves = case_curves(prediction, entropy, label, SPACING)
    assert set(curves) == {(unit, order) for unit in UNITS for order in ORDERS}
    share = (prediction != label).mean()
    assert curves["voxels", "uncertainty"].area == pytest.approx(1 - share / 2)
    assert curves["voxels", "oracle"].area == pytest.approx(curves["voxels", "uncertainty"].area)
    assert curves["voxels", "contour"].area < curves["voxels", "oracle"].area
    assert curves["slices", "random"].area == curves["voxels", "random"].area == pytest.approx(0.5)


def test_slices_are_inspected_by_the_sum_of_their_entropy(case):
    prediction, entropy, label = case
    curve = case_curves(prediction, entropy, label, SPACING)["slices", "uncertainty"]
    assert curve.found[:3].tolist() == pytest.approx([0, 1, 1]) or curve.found[1] == pytest.approx(0.5)
    assert curve.area > 0.8


def test_contour_is_where_a_neighbour_has_another_class():
    segmentation = np.zeros((5, 5, 5), dtype=np.uint8)
    segmentation[1:4, 1:4, 1:4] = 1
    expected = np.zeros((5, 5, 5), dtype=bool)
    for voxel in itertools.product(range(5), repeat=3):
        for axis, step in itertools.product(range(3), (-1, 1)):
            other = list(voxel)
            other[axis] += step
            if 0 <= other[axis] < 5:
                expected[voxel] |= segmentation[voxel] != segmentation[tuple(other)]
    assert np.array_equal(contour(segmentation), expected)


@pytest.fixture
def runs(tmp_path, case):
    """Two seeds with three test cases each; the last case has no error for seed 1."""
    prediction, entropy, label = case
    folders = []
    for seed in (0, 1):
        folder = tmp_path / f"run{seed}"
        facts = {"name": folder.name, "method": "GBDL", "dataset": "phantom", "labelled": 4, "seed": seed}
        (folder / "evaluation" / "predictions").mkdir(parents=True)
        (folder / "run.json").write_text(json.dumps({**facts, "status": "finished", "structures": {"1": "organ"}}))
        rows, cases = ["case,structure,dice"], []
        for number in range(3):
            name = f"case{number}"
            found = label if (seed, number) == (1, 2) else np.roll(prediction, number, axis=0)
            maps = {"seg": (found, np.uint8), "entropy": (np.roll(entropy, seed, axis=1), np.float32)}
            for kind, (array, dtype) in maps.items():
                path = folder / "evaluation" / "predictions" / f"{name}_{kind}.nii.gz"
                write_nifti(path, array, np.diag([*SPACING, 1]), dtype)
            for kind, array in (("image", entropy), ("label", label)):
                write_nifti(tmp_path / kind / f"{name}.nii.gz", array, np.diag([*SPACING, 1]), array.dtype)
            paths = {kind: str(tmp_path / kind / f"{name}.nii.gz") for kind in ("image", "label")}
            cases.append({"id": name, "patient": name, "role": "test", **paths})
            rows.append(f"{name},organ,0.8")
        (folder / "split.json").write_text(json.dumps({"cases": cases}))
        (folder / "evaluation" / "per_case.csv").write_text("\n".join(rows) + "\n")
        folders.append(folder)
    return folders


def test_seeds_are_taken_together_and_faultless_cases_left_out(runs):
    (found,) = inspect_runs(runs)
    assert found.seeds == [0, 1] and found.cases == ["case0", "case1"] and found.faultless == ["case2"]
    areas = found.areas["voxels", "uncertainty"]
    mean, interval = found.area("voxels", "uncertainty")
    assert areas.shape == (2, 2) and mean == pytest.approx(areas.mean()) and interval.low <= mean <= interval.high
    gain, interval = found.gain("voxels", "random")
    assert gain == pytest.approx(areas.mean() - 0.5) and interval.low <= gain <= interval.high


def test_files_hold_every_case_and_the_means(runs, tmp_path):
    written = write_inspections(inspect_runs(runs), tmp_path / "out")
    assert [path.name for path in written] == ["inspection.csv", "inspection.md", "inspection.png"]
    with written[0].open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 2 * len(UNITS) * len(ORDERS)
    table = written[1].read_text().splitlines()
    assert len(table) == 4 and "phantom" in table[2] and "0.500" in table[2]
    assert "Gain over random | Gain over oracle" in table[0].replace("Gain over contour | ", "")
    assert written[2].read_bytes()[:4] == b"\x89PNG"


def test_run_without_predictions_is_named(runs):
    (runs[0] / "evaluation" / "per_case.csv").unlink()
    with pytest.raises(DataError, match="run0: no evaluated scans"):
        inspect_runs(runs)


def test_same_seed_twice_is_refused(runs):
    with pytest.raises(DataError, match="comes twice"):
        inspect_runs([runs[0], runs[0]])
