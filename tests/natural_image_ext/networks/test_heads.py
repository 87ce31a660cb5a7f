"""Heads: what a network asks of each, the names of their weights, and how many passes a draw takes."""

import pytest
import torch
from torch import nn

from natural_image_ext.networks import LayeredHead, LinearHead, NPHead, NPSegHead, build_classifier, build_segmentation


def maps():
    return torch.randn(2, 6, 5, 7, generator=torch.Generator().manual_seed(0))


def seg_head(kind):
    torch.manual_seed(1)
    if kind == "np":
        return NPSegHead(6, 3, hidden=4, width=8, bank_size=4, samples=3).eval()
    return LayeredHead(nn.Dropout2d(0.5), nn.Conv2d(6, 3, 1)).eval()


def test_plain_heads_have_the_weights_of_the_layers_they_are():
    assert LinearHead(4, 2).state_dict().keys() == nn.Linear(4, 2).state_dict().keys()
    layers = [nn.Conv2d(6, 3, 1), nn.ReLU()]
    assert LayeredHead(*layers).state_dict().keys() == nn.Sequential(*layers).state_dict().keys()


def test_networks_load_the_checkpoints_of_plain_layers():
    classifier = build_classifier("wrn_10_1", 3, "linear")
    assert {"head.weight", "head.bias"} == {name for name in classifier.state_dict() if name.startswith("head.")}
    names = build_segmentation("resnet18", 3, "dropout", channels=8, detail=8).state_dict()
    assert {"head.0.weight", "head.3.weight", "head.6.weight", "head.6.bias"} <= names.keys()


@pytest.mark.parametrize(("kind", "passes_differ", "groups", "passes"), [
    ("plain", True, [1, 1, 1, 1], 4), ("plain", False, [1], 1), ("np", False, [4], 1),
])  # fmt: skip
def test_draws_of_a_neural_process_share_one_pass_and_those_of_dropout_do_not(kind, passes_differ, groups, passes):
    calls = []

    def compute_features():
        calls.append(1)
        return maps()

    drawn = list(seg_head(kind).sampler(compute_features, passes_differ)(4))
    assert [len(group) for group in drawn] == groups and len(calls) == passes
    assert all(torch.allclose(group.sum(2), torch.ones(len(group), 2, 5, 7), atol=1e-5) for group in drawn)


@pytest.mark.parametrize("kind", ["plain", "np"])
def test_no_draws_are_one_prediction_without_chance(kind):
    draw = seg_head(kind).sampler(maps, passes_differ=True)
    (first,), (second,) = draw(0), draw(0)
    assert len(first) == 1 and torch.equal(first, second)


def test_logits_of_a_neural_process_are_logarithms_of_its_mean_probabilities():
    head = seg_head("np")
    torch.manual_seed(5)
    logits = head.logits(maps())
    torch.manual_seed(5)
    assert torch.allclose(logits.exp(), head(maps()).probs, atol=1e-6)


def test_several_labels_of_one_picture_have_probabilities_of_their_own_in_every_draw():
    head = NPHead(6, 3, hidden=4, bank_size=4, activation="sigmoid").eval()
    features = torch.randn(5, 6)
    torch.manual_seed(2)
    (group,) = head.sampler(lambda: features, False)(7)
    torch.manual_seed(2)
    assert group.shape == (7, 5, 3) and torch.equal(group.mean(0), head(features, 7).probs)


@pytest.mark.parametrize("kind", ["plain", "np"])
def test_training_pass_has_logits_and_a_kl_that_only_latents_have(kind):
    head = seg_head(kind).train()
    found = head.learn(maps(), torch.randint(0, 3, (2, 10, 14)), labelled=1)
    assert found.logits.shape == (2, 3, 5, 7) and found.kl.shape == ()
    assert (float(found.kl) > 0) == (kind == "np")


def test_training_pass_of_a_neural_process_takes_labelled_images_as_context_and_all_as_targets():
    head, labels = seg_head("np"), torch.zeros(2, 5, 7, dtype=torch.long)
    labels[1] = 2
    head.train().learn(maps(), labels, labelled=1)
    assert head.context_banks.counts.tolist() == [4, 1, 1] and head.latent_banks.counts.tolist() == [4, 1, 4]


def test_only_heads_with_memory_are_made_smaller_for_inference():
    plain, process = seg_head("plain"), seg_head("np")
    assert plain.for_inference() is plain
    assert process.for_inference().latent_banks.rows.shape[1] == 1
