"""The numbers of a prediction: volumes, entropies, the slices that need a human."""

import numpy as np
import pytest

from medssl.inference.outputs import UNCERTAIN_SLICES, describe
from medssl.inference.predictor import Prediction
from medssl.uncertainty import slice_needs, structure_scores


@pytest.fixture
def prediction():
    probs = np.zeros((3, 12, 12, 9), dtype=np.float32)
    probs[0] = 1
    probs[:, 2:6, 2:6, 2:5] = np.array([0.1, 0.9, 0.0]).reshape(3, 1, 1, 1)
    entropy = np.random.default_rng(0).random((12, 12, 9)).astype(np.float32)
    return Prediction("one", probs, entropy, 0 * entropy, np.diag([1.0, 1.0, 2.0, 1.0]))


def test_record_has_volumes_and_entropies_of_every_structure(prediction):
    record = describe(prediction, {1: "liver", 2: "tumour"})
    liver, tumour = record["structures"]["liver"], record["structures"]["tumour"]
    assert liver["volume_ml"] == pytest.approx(4 * 4 * 3 * 2 / 1000) and tumour["volume_ml"] == 0
    assert liver["mean_entropy_bits"] == pytest.approx(prediction.entropy[2:6, 2:6, 2:5].mean(), abs=1e-5)
    scores = structure_scores(prediction.segmentation, prediction.entropy, (1.0, 1.0, 2.0), {1: "liver", 2: "tumour"})
    assert liver["surroundings_entropy_bits"] == pytest.approx(scores["liver"], abs=1e-5)
    assert record["score"] == pytest.approx((scores["liver"] + scores["tumour"]) / 2, abs=1e-5)


def test_record_names_the_most_uncertain_slices_in_order(prediction):
    slices = describe(prediction, {1: "liver"})["uncertain_slices"]
    assert len(slices) == UNCERTAIN_SLICES and {entry["axis"] for entry in slices} == {2}
    sums = [entry["entropy_bits"] for entry in slices]
    assert sums == sorted(sums, reverse=True) and sums[0] > 0


@pytest.mark.parametrize("structures", [{1: "liver"}, {1: "liver", 2: "tumour"}, {2: "tumour"}])
def test_slices_are_those_of_all_classes_whichever_are_named(prediction, structures):
    prediction.probs[:, 8:10, 8:10, 6:8] = np.array([0.1, 0.2, 0.7]).reshape(3, 1, 1, 1)
    needs = slice_needs(prediction.segmentation, prediction.entropy, prediction.spacing_mm)
    found = describe(prediction, structures)["uncertain_slices"]
    expected = [(need.index, round(need.entropy_bits, 4)) for need in needs[:UNCERTAIN_SLICES]]
    assert [(entry["index"], entry["entropy_bits"]) for entry in found] == expected
