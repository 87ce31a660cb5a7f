"""U2PL: which pixels are learned as labels, which are negatives of which class, and the contrast against them."""

import math

import pytest
import torch
from torch.nn import functional as F

from natural_image_ext.methods.segmentation import U2PL, Learned, Taught

CLASSES = 4


def test_least_sure_pixels_are_dropped_and_fewer_of_them_later(batch, network, taught_of):
    torch.manual_seed(0)
    method = U2PL(network(), num_classes=CLASSES, total_steps=10, unreliable=0.2, contrast_weight=0.0)
    probs, logits = torch.randn(2, CLASSES, 10, 10).softmax(1), torch.randn(2, CLASSES, 10, 10)
    learned = Learned(torch.randn(3, 8, 5, 5), torch.randn(1, CLASSES, 10, 10), logits, torch.zeros(()))
    label = torch.zeros(1, 10, 10, dtype=torch.long)
    for step, dropped in ((0, 40), (5, 20), (10, 0)):
        method.step.fill_(step)
        found = method.unlabelled_loss(learned, taught_of(probs), {"label": label})
        entropy = -(probs * probs.log()).sum(1).flatten()
        kept = entropy.argsort()[: 200 - dropped]
        each = F.cross_entropy(logits, probs.argmax(1), reduction="none").flatten()[kept]
        assert float(found) == pytest.approx(float(each.mean()) * 200 / (200 - dropped), rel=0.01)


def test_negatives_of_each_class_are_remembered_and_contrasted_against(network, taught_of):
    torch.manual_seed(0)
    method = U2PL(network(), num_classes=CLASSES, memory=50, dimension=6, queries=20, negatives=5, ranks=(1, 3))
    features = torch.randn(2, 8, 4, 4)
    certain = torch.full((1, CLASSES, 4, 4), -5.0)
    certain[:, 0] = 5.0  # every labelled pixel is class 0, and then 1, 2, 3 in rank
    certain[:, 1], certain[:, 2] = -1.0, -2.0
    unsure = torch.tensor([0.4, 0.3, 0.2, 0.1])[None, :, None, None].expand(1, -1, 4, 4)
    learned = Learned(features, certain, torch.zeros(1), torch.zeros(()))
    label = torch.zeros(1, 4, 4, dtype=torch.long)
    taught = taught_of(unsure.contiguous())
    nothing = torch.zeros(1, 4, 4, dtype=torch.bool)
    assert float(method.contrast(learned, taught, nothing, label)) == 0, "no memory of negatives of class 0 yet"
    # unreliable pixels are negatives of classes of rank 1 and 2; labelled ones of another label where it ranks first
    assert method.memory.counts.tolist() == [0, 16, 16, 0]
    found = method.contrast(learned, taught, ~nothing, torch.ones(1, 4, 4, dtype=torch.long))
    assert method.memory.counts.tolist() == [16, 16, 16, 0] and float(found) > 0
    found.backward()
    assert all(p.grad.abs().sum() > 0 for p in method.projection.parameters() if p.ndim > 1)


def _contrast_classes_without_negatives(rank, batch, built):
    method = built("u2pl")
    method.network.head.bias.data[3] -= 100.0  # ranks last everywhere, and at the end no pixel is unreliable:
    method.step.fill_(method.total_steps)  # no process has a negative of that class
    loss = method({**batch, "label": torch.full_like(batch["label"], rank)})["loss"]
    assert loss.isfinite() and int(method.memory.counts[3]) == 0 < int(method.memory.counts[2])


def test_training_goes_on_where_no_process_has_negatives_of_a_class(run_in_group, batch, built):
    assert run_in_group(_contrast_classes_without_negatives, batch, built) == [0, 0]


def contrasted(network, **options):
    """U2PL with vectors of two numbers and ranks of four classes."""
    settings = {"memory": 50, "dimension": 2, "queries": 20, "negatives": 3, "ranks": (1, 3), **options}
    return U2PL(network(), num_classes=CLASSES, **settings)


def scores_of(*probs):
    """Logits (1, classes, 4, 4) with these probabilities at every pixel."""
    return torch.tensor(probs).log()[None, :, None, None].expand(1, -1, 4, 4).contiguous()


def test_contrast_of_an_anchor_has_its_golden_value(network):
    method = contrasted(network, temperature=0.5)
    negative = torch.tensor([-0.6, 0.8])
    method.memory.write(negative[None, :, None, None], torch.full((1, 1, 1), 2))
    assert method.memory.counts.tolist() == [0, 0, 1, 0], "no vector of zeros is there to be drawn"
    anchors = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    found = method._info_nce(anchors, torch.tensor([0.8, 0.6]), label=2)
    each = [
        math.log(math.exp(near / 0.5) + 3 * math.exp(far / 0.5)) - near / 0.5 for near, far in ((0.8, -0.6), (0.6, 0.8))
    ]
    assert float(found) == pytest.approx(sum(each) / 2, rel=1e-5)


def test_anchors_are_pixels_that_are_likely_of_their_class(network, taught_of, monkeypatch):
    method = contrasted(network, anchor=0.3)
    labelled = scores_of(0.1, 0.2, 0.3, 0.4)
    labelled[..., :2] = scores_of(0.6, 0.2, 0.1, 0.1)[..., :2]
    learned = Learned(torch.randn(2, 8, 4, 4), labelled, torch.zeros(1), torch.zeros(()))
    method.memory.write(torch.ones(1, 2, 1, 1), torch.zeros(1, 1, 1, dtype=torch.long))
    given = {}

    def note(anchors, positive, label):
        given[label] = len(anchors)
        return anchors.sum()

    monkeypatch.setattr(method, "_info_nce", note)
    nothing = torch.zeros(1, 4, 4, dtype=torch.bool)
    method.contrast(learned, taught_of(scores_of(0.25, 0.25, 0.25, 0.25).exp()), nothing, nothing.long())
    assert given == {0: 8}


def test_padding_is_no_negative(network):
    method = contrasted(network)
    probs = scores_of(0.4, 0.3, 0.2, 0.1).exp()
    labels = torch.zeros(1, 4, 4, dtype=torch.long)
    labels[:, 3:] = 255
    learned = Learned(torch.randn(2, 8, 4, 4), scores_of(0.7, 0.1, 0.1, 0.1), torch.zeros(1), torch.zeros(()))
    known = torch.full((1, 4, 4), 255)
    method.contrast(learned, Taught(torch.zeros(1, 3, 4, 4), probs, labels), labels > 255, known)
    assert method.memory.counts.tolist() == [0, 12, 12, 0]
