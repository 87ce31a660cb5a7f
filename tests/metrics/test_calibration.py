"""ECE and UCE against their formulas in float64, and against MONAI's metric."""

import itertools

import numpy as np
import pytest
import torch
from monai.metrics import CalibrationErrorMetric

from medssl.core.errors import ConfigError, DataError
from medssl.metrics import calibration, ece, uce

CLOSE = 1e-7  # MONAI's means are float32


def gap_by_formula(scores, outcomes, bins):
    """sum_b n_b / N |mean score - mean outcome|, one bin after the other."""
    edges, total = np.linspace(0, 1, bins + 1), 0.0
    for lower, upper in itertools.pairwise(edges):
        inside = ((scores > lower) | (lower == 0)) & (scores <= upper)
        if inside.any():
            total += inside.mean() * abs(scores[inside].mean() - outcomes[inside].mean())
    return total


@pytest.fixture(params=[2, 4], ids=["2 classes", "4 classes"])
def volume(request):
    """Probabilities (C, 9, 8, 7) in float64 and a label map that they know something about."""
    rng = np.random.default_rng(request.param)
    probs = rng.dirichlet([0.5] * request.param, size=(9, 8, 7))
    label = (probs.cumsum(-1) > rng.random((9, 8, 7, 1))).argmax(-1)
    return np.moveaxis(probs, -1, 0), label


@pytest.mark.parametrize("bins", [1, 10, 15])
def test_ece_equals_the_formula(volume, bins):
    probs, label = volume
    expected = gap_by_formula(probs.max(0), probs.argmax(0) == label, bins)
    assert ece(probs, label, bins) == pytest.approx(expected, abs=CLOSE)


@pytest.mark.parametrize("bins", [1, 10, 15])
def test_ece_equals_monais_metric_on_a_small_volume(volume, bins):
    probs, label = volume
    metric = CalibrationErrorMetric(num_bins=bins)
    metric(torch.tensor(probs.max(0))[None, None], torch.tensor(probs.argmax(0) == label)[None, None])
    assert ece(probs, label, bins) == pytest.approx(metric.aggregate().item(), abs=1e-6)


def test_a_confidence_on_an_edge_belongs_to_the_bin_below():
    probs = np.stack([edges := np.repeat([0.6, 0.61, 0.8, 0.81], 25), 1 - edges])
    label = np.tile([0, 0, 0, 1, 0], 20)
    assert ece(probs, label, bins=5, class_axis=0) == pytest.approx(gap_by_formula(edges, label == 0, 5), abs=CLOSE)


@pytest.mark.parametrize("true_ece", [1e-3, 1e-5])
def test_ece_keeps_its_digits_on_a_million_voxels(true_ece):
    pair = np.array([1 - true_ece, true_ece])[:, None, None, None]
    # MONAI's metric sums them all in float32 and gives 0.00005 for 0.001
    found = ece(np.broadcast_to(pair, (2, 128, 128, 64)), np.zeros((128, 128, 64), np.uint8))
    assert found == pytest.approx(true_ece, abs=2e-8)


def test_ece_keeps_its_digits_where_errors_come_in_runs():
    """Long runs of right, then of wrong voxels: the sums of a bin grow before they cancel."""
    confidence = np.linspace(0.5, 1, 2**19)
    right = np.arange(2**19) // 3000 % 4 > 0
    found = ece(np.stack([confidence, 1 - confidence]), (~right).astype(np.uint8), class_axis=0)
    assert found == pytest.approx(gap_by_formula(confidence, right, 15), abs=CLOSE)


def test_bins_and_means_come_from_monai(volume, monkeypatch):
    calls = []

    def counted(*args, **kwargs):
        calls.append(args)
        return binning(*args, **kwargs)

    binning = calibration.calibration_binning
    monkeypatch.setattr(calibration, "calibration_binning", counted)
    ece(*volume)
    assert len(calls) == 1


def test_confident_and_right_is_calibrated_confident_and_wrong_is_not():
    probs = np.stack([np.ones((3, 3)), np.zeros((3, 3))])
    assert ece(probs, np.zeros((3, 3), int)) == 0
    assert ece(probs, np.ones((3, 3), int)) == 1


@pytest.mark.parametrize("bins", [1, 10, 15])
def test_uce_of_an_uncertainty_equals_the_formula(bins):
    rng = np.random.default_rng(0)
    uncertainty = rng.random((9, 8, 7))
    correct = rng.random((9, 8, 7)) > uncertainty**2
    assert uce(uncertainty, correct, bins) == pytest.approx(gap_by_formula(uncertainty, ~correct, bins), abs=CLOSE)


def test_uce_of_probabilities_takes_the_normalised_entropy(volume):
    probs, label = volume
    correct = probs.argmax(0) == label
    entropy = -(probs * np.log(probs)).sum(0) / np.log(len(probs))
    assert uce(probs, correct) == pytest.approx(uce(entropy, correct), abs=CLOSE)


def test_uce_is_zero_when_sure_ones_are_right_and_unsure_ones_wrong():
    correct = np.array([True, True, False])
    assert uce(np.array([0.0, 0.0, 1.0]), correct) == 0
    assert uce(np.array([1.0, 1.0, 0.0]), correct) == 1
    assert uce(np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]), correct) == pytest.approx(0)


@pytest.mark.parametrize("class_axis", [0, 1, 3, -1])
def test_classes_may_stand_on_any_axis(volume, class_axis):
    probs, label = volume
    correct, moved = probs.argmax(0) == label, np.moveaxis(probs, 0, class_axis)
    assert ece(moved, label, class_axis=class_axis) == pytest.approx(ece(probs, label))
    assert uce(moved, correct, class_axis=class_axis) == pytest.approx(uce(probs, correct))


def test_a_list_of_voxels_has_its_classes_last(volume):
    probs, label = volume
    table, correct = probs.reshape(len(probs), -1).T, probs.argmax(0) == label
    assert ece(table, label.ravel()) == pytest.approx(ece(probs, label))
    assert uce(table, correct.ravel()) == pytest.approx(uce(probs, correct))


def test_blocks_do_not_change_the_result(volume, monkeypatch):
    probs, label = volume
    correct = probs.argmax(0) == label
    whole = ece(probs, label), uce(probs, correct)
    monkeypatch.setattr(calibration, "BLOCK_VOXELS", 50)
    assert (ece(probs, label), uce(probs, correct)) == pytest.approx(whole, abs=CLOSE)


def test_torch_tensors_give_the_same(volume):
    probs, label = volume
    tensor, correct = torch.from_numpy(probs), probs.argmax(0) == label
    assert ece(tensor, torch.from_numpy(label).float()) == pytest.approx(ece(probs, label))
    assert uce(tensor.requires_grad_(), torch.from_numpy(correct)) == pytest.approx(uce(probs, correct))


def test_inputs_that_do_not_fit_are_refused(volume):
    probs, label = volume
    with pytest.raises(DataError, match="do not fit"):
        ece(probs, label[1:])
    with pytest.raises(DataError, match="do not fit"):
        uce(probs[None], label == 0)
    with pytest.raises(DataError, match="1 class"):
        ece(probs[:1], label)
    with pytest.raises(DataError, match="class ids"):
        ece(probs, np.full_like(label, 255))
    with pytest.raises(DataError, match="softmax"):
        ece(np.log(probs), label)
    with pytest.raises(DataError, match="softmax"):
        ece(probs * np.nan, label)
    with pytest.raises(DataError, match="expected 0 to 1"):
        uce(np.full(label.shape, 1.5), label == 0)
    with pytest.raises(DataError, match="no voxels"):
        uce(np.zeros(0), np.zeros(0, bool))
    with pytest.raises(ConfigError, match="bins"):
        ece(probs, label, bins=0)
