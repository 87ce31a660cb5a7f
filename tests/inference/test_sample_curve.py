"""Results along one series of samples are those of plain runs with as many samples, and land in samples.csv."""

import csv
import json
import math
import shutil
from collections import defaultdict

import numpy as np
import pytest
import torch

from medssl.core.errors import ConfigError
from medssl.core.prediction_options import MODES
from medssl.data import Pipeline, facts_from_json
from medssl.data.volumes import write_nifti
from medssl.inference import MCDropoutInferer, Predictor
from medssl.inference.sample_curve import write_sample_curve
from medssl.networks import MCDropoutUNet3D

WINDOW, STRIDE = (16, 16, 8), (8, 8, 4)
COUNTS = (1, 3, 4)
FACTS = {
    "name": "folder",
    "window": [-100, 250],
    "slice_size": [24, 24],
    "region_size": None,
    "patch_size": [16, 16, 8],
    "label_map": {"1": 1},
    "structures": {"1": "bright"},
}


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return MCDropoutUNet3D(1, 2, widths=(4, 8))


def inferer(samples, mode="reference"):
    return MCDropoutInferer(WINDOW, STRIDE, samples, mode=mode)


def rows_of(file):
    return list(csv.DictReader(file.open()))


@pytest.fixture
def run_copy(trained_run, tmp_path):
    """A finished run that a test may write into."""
    return shutil.copytree(trained_run, tmp_path / "run")


@pytest.mark.parametrize("mode", MODES)
def test_statistics_on_the_way_equal_plain_ones_with_as_many_samples(network, mode):
    image = torch.rand(1, 1, 20, 24, 9, generator=torch.Generator().manual_seed(1))
    torch.manual_seed(3)
    on_the_way = inferer(4, mode).running_statistics(image, network, COUNTS)
    for count, found in zip(COUNTS, on_the_way, strict=True):
        torch.manual_seed(3)
        plain = inferer(count, mode).statistics(image, network)
        assert torch.allclose(found.mean, plain.mean, atol=1e-6)
        assert torch.allclose(found.entropy, plain.entropy, atol=1e-5)
        assert torch.allclose(found.mutual_information, plain.mutual_information, atol=1e-5)
        assert math.isfinite(found.seconds) and found.seconds >= 0


def test_predictions_on_the_way_equal_plain_ones_on_the_scans_grid(network, tmp_path):
    scan = np.random.default_rng(0).integers(-100, 250, (20, 30, 9)).astype(np.int16)
    write_nifti(tmp_path / "scan.nii.gz", scan, np.diag([1.5, 1.0, 2.0, 1.0]), np.int16)
    case = {"id": "scan", "image": str(tmp_path / "scan.nii.gz")}
    pipeline = Pipeline(facts_from_json(**FACTS))
    on_the_way = list(Predictor(network, pipeline, inferer(4)).running(case, COUNTS))
    for count, (found, _) in zip(COUNTS, on_the_way, strict=True):
        plain = Predictor(network, pipeline, inferer(count))(case)
        assert np.allclose(found.probs, plain.probs, atol=1e-5)
        assert np.allclose(found.entropy, plain.entropy, atol=1e-4)
    assert not np.array_equal(on_the_way[0][0].probs, on_the_way[1][0].probs)


def test_table_agrees_with_the_runs_evaluation_at_its_number_of_samples(run_copy):
    rows = rows_of(write_sample_curve(run_copy, [2, 1], mode="fast"))  # the mode of its evaluation
    evaluated = defaultdict(list)
    for row in rows_of(run_copy / "evaluation" / "per_case.csv"):
        evaluated[row["case"]].append(row)

    assert [(row["case"], row["samples"]) for row in rows] == [(case, t) for case in evaluated for t in ("1", "2")]
    for one, two in zip(rows[::2], rows[1::2], strict=True):
        expected = evaluated[two["case"]]
        assert float(two["dice"]) == pytest.approx(np.mean([float(row["dice"]) for row in expected]), abs=1e-6)
        assert (two["pavpu"], two["ece"]) == (expected[0]["pavpu"], expected[0]["ece"])
        assert one["ece"] != two["ece"] and min(float(one["seconds"]), float(two["seconds"])) >= 0


@pytest.fixture
def asked(monkeypatch):
    """Mode, shape and numbers of samples of every call of the inferer."""
    calls = []
    real = MCDropoutInferer.running_statistics

    def noted(inferer, inputs, network, counts):
        calls.append((inferer.mode, tuple(inputs.shape), tuple(counts)))
        return real(inferer, inputs, network, counts)

    monkeypatch.setattr(MCDropoutInferer, "running_statistics", noted)
    return calls


@pytest.mark.parametrize(("given", "used"), [(None, "exact"), ("fast", "fast")])
def test_samples_are_drawn_in_exact_unless_another_mode_is_asked_for(run_copy, asked, given, used):
    assert json.loads((run_copy / "evaluation" / "settings.json").read_text())["mode"] == "fast"
    rows = rows_of(write_sample_curve(run_copy, [1, 2], limit=1, mode=given))
    assert {row["mode"] for row in rows} == {mode for mode, _, _ in asked} == {used}


def test_time_of_a_patch_is_measured_for_every_number_of_samples(run_copy, asked):
    rows = rows_of(write_sample_curve(run_copy, [1, 3], limit=1))
    patch = (1, 1, *json.loads((run_copy / "evaluation" / "settings.json").read_text())["window"])
    for count in (1, 3):
        assert asked.count(("exact", patch, (count,))) >= 3  # each by itself, three times
    assert all(float(row["patch_seconds"]) > 0 for row in rows)


def test_only_the_first_cases_are_taken_where_asked(run_copy):
    assert len(rows_of(write_sample_curve(run_copy, [1], limit=2))) == 2


@pytest.mark.parametrize("values", [[], [0, 5]])
def test_numbers_of_samples_below_one_are_refused(run_copy, values):
    with pytest.raises(ConfigError, match="from 1 on"):
        write_sample_curve(run_copy, values)


def test_no_cases_are_refused(run_copy):
    with pytest.raises(ConfigError, match="no test cases"):
        write_sample_curve(run_copy, [1], limit=0)
