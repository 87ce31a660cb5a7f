"""What a training step gives a neural process as context and as targets, and the KL it learns from them."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.distributions import Normal, kl_divergence

from natural_image_ext.methods.segmentation import MeanTeacher, Taught
from natural_image_ext.methods.segmentation.step import learn
from natural_image_ext.networks import NPSegHead
from natural_image_ext.networks.segmentation import SegmentationNetwork


@pytest.fixture
def network():
    """In evaluation mode, so that a step leaves the banks as they are; both sides' centres lie far apart."""
    torch.manual_seed(0)
    head = NPSegHead(8, 3, hidden=4, width=8, bank_size=16, samples=2)
    for number, banks in enumerate((head.latent_banks, head.context_banks)):
        banks.write(3 * torch.randn(2, 4, 5, 5) + number, torch.randint(0, 3, (2, 5, 5)))
    nn.init.normal_(head.to_latent[-1].weight)
    return SegmentationNetwork(nn.Conv2d(3, 8, 3, padding=1), nn.Identity(), head, 8).eval()


@pytest.fixture
def shown():
    torch.manual_seed(1)
    images, labels = torch.randn(3, 3, 6, 6), torch.randint(0, 3, (3, 6, 6))
    probs = torch.randn(2, 3, 6, 6).softmax(1)
    return images, labels, Taught(torch.randn(2, 3, 6, 6), probs, probs.argmax(1))


def test_kl_of_a_step_is_that_of_target_latents_from_context_latents(network, shown):
    images, labels, taught = shown
    found = learn(network, images, labels, taught).kl
    head = network.head
    reduced = head.reduce(network.features(torch.cat([images, taught.images])))
    target, context = (
        Normal(*head.latent_of(head.described(reduced, banks.centres())))
        for banks in (head.latent_banks, head.context_banks)
    )
    expected = kl_divergence(target, context).sum(-1).mean()
    assert torch.allclose(found, expected, rtol=1e-4) and float(expected) > 0.01
    turned = kl_divergence(context, target).sum(-1).mean()
    roots = kl_divergence(Normal(target.mean, target.stddev.sqrt()), Normal(context.mean, context.stddev.sqrt()))
    for wrong in (turned, roots.sum(-1).mean()):
        assert not torch.allclose(found, wrong, rtol=0.02)


def test_loss_has_the_kl_with_its_weight(network, shown):
    images, labels, taught = shown
    method = MeanTeacher(network, unlabelled_weight=0.0, kl_weight=0.25).eval()
    terms = method({"image": images, "label": labels, "weak": taught.images, "strong": taught.images})
    assert torch.allclose(terms["loss"], terms["labelled"] + 0.25 * terms["kl"]) and float(terms["kl"]) > 0


def test_labelled_images_are_the_context_and_all_images_the_targets(network, shown):
    images, labels, taught = shown
    banks = (network.head.context_banks, network.head.latent_banks)
    for bank in banks:
        bank.counts.fill_(1)
    all_of_class_2 = replace(taught, labels=torch.full_like(taught.labels, 2))
    learn(network.train(), images, torch.zeros_like(labels), all_of_class_2)
    assert [bank.counts.tolist() for bank in banks] == [[16, 1, 1], [16, 1, 16]]
