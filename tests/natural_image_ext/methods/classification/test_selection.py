"""Selection of pseudo-labels: thresholds, the curriculum against a plain loop, alignment."""

import pytest
import torch

from natural_image_ext.methods.classification.selection import Selection, aligned, convex


def test_golden_s2_curriculum_mapping():
    status = torch.tensor([0, 0.25, 0.5, 0.75, 1], dtype=torch.float64)
    assert (0.95 * convex(status)).tolist() == pytest.approx([0, 0.1357142857, 0.3166666667, 0.57, 0.95], abs=1e-9)


def test_golden_s5_alignment():
    probs = torch.tensor([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.2, 0.5, 0.3]], dtype=torch.float64)
    assert aligned(probs)[0].tolist() == pytest.approx([0.5384615385, 0.2307692308, 0.2307692308], abs=1e-9)
    assert torch.allclose(aligned(probs).sum(-1), torch.ones(3, dtype=torch.float64))


def test_confidence_and_uncertainty_are_both_asked_for():
    probs = torch.tensor([[0.96, 0.04], [0.94, 0.06], [0.05, 0.95], [0.01, 0.99]])
    uncertainty = torch.tensor([0.1, 0.1, 0.4, 0.5])
    assert Selection(2)(probs).accepted.tolist() == [True, False, True, True]
    found = Selection(2, uncertainty=0.4)(probs, uncertainty)
    assert found.accepted.tolist() == [True, False, True, False] and found.labels.tolist() == [0, 0, 1, 1]


def thresholds_by_loop(stored, confidence, classes):
    counts = {label: stored.count(label) for label in range(-1, classes)}
    most = max([*(counts[label] for label in range(classes)), counts[-1], 1])
    return [confidence * (counts[c] / most) / (2 - counts[c] / most) for c in range(classes)]


def test_curriculum_equals_a_plain_loop():
    torch.manual_seed(0)
    selection, stored = Selection(3, confidence=0.6, num_unlabelled=8), [-1] * 8
    for _ in range(12):
        index = torch.randperm(8)[:4]
        probs = torch.softmax(3 * torch.randn(4, 3), dim=-1)
        asked = thresholds_by_loop(stored, 0.6, 3)
        assert selection.thresholds().tolist() == pytest.approx(asked, abs=1e-6)
        found = selection(probs, index=index)
        for row, place in enumerate(index.tolist()):
            highest, label = probs[row].max(0)
            assert bool(found.accepted[row]) == bool(highest >= asked[int(label)] - 1e-7)
            if highest >= 0.6:
                stored[place] = int(label)
    assert selection.last_labels.tolist() == stored


def test_curriculum_is_saved():
    selection = Selection(2, num_unlabelled=3)
    selection(torch.tensor([[0.99, 0.01]]), index=torch.tensor([2]))
    restored = Selection(2, num_unlabelled=3)
    restored.load_state_dict(selection.state_dict())
    assert restored.last_labels.tolist() == [-1, -1, 0]


def test_missing_uncertainty_or_index_is_refused():
    with pytest.raises(ValueError, match="no uncertainty is given"):
        Selection(2, uncertainty=0.4)(torch.tensor([[0.9, 0.1]]))
    with pytest.raises(ValueError, match="index of every unlabelled sample"):
        Selection(2, num_unlabelled=3)(torch.tensor([[0.9, 0.1]]))
