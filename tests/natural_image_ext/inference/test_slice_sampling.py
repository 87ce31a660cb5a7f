"""Scans slice by slice through each head: against a plain loop over slices, and against stacked draws."""

import pytest
import torch
from torch import nn

from medssl.inference import SliceInferer
from medssl.inference.mc_dropout import MCStatistics
from medssl.uncertainty import mutual_information, predictive_entropy
from natural_image_ext.networks import NPSegHead, build_segmentation


@pytest.fixture(scope="module")
def scan():
    return torch.rand(1, 1, 36, 40, 7, generator=torch.Generator().manual_seed(1)) * 2 - 1


def network(head):
    torch.manual_seed(0)
    found = build_segmentation("resnet18", 3, head, dropout=0.3, channels=16, detail=16, bank_size=8)
    if head == "np":
        for banks in (found.head.latent_banks, found.head.context_banks):
            banks.rows.normal_()
    return found


@pytest.mark.parametrize("slice_batch", [1, 3, 8])
def test_plain_network_equals_a_loop_over_slices(scan, slice_batch):
    plain = network("plain")
    found = SliceInferer(samples=5, slice_batch=slice_batch).statistics(scan, plain)
    with torch.no_grad():
        for place in range(7):
            below, above = max(0, place - 1), min(6, place + 1)
            image = torch.stack([scan[0, 0, ..., below], scan[0, 0, ..., place], scan[0, 0, ..., above]])[None]
            maps = plain.eval().head(plain.features(image)).softmax(1)
            expected = nn.functional.interpolate(maps, (36, 40), mode="bilinear", align_corners=True)[0]
            assert torch.allclose(found.mean[0, ..., place], expected, atol=1e-5)
    assert found.mean.shape == (1, 3, 36, 40, 7) and found.entropy.shape == (1, 36, 40, 7)
    assert found.mutual_information.max() < 1e-6, "one pass knows of no other"


def test_latents_of_the_neural_process_equal_stacked_draws(scan):
    learned = network("np").eval()
    torch.manual_seed(3)
    found = SliceInferer(samples=4, slice_batch=7).statistics(scan, learned)
    drawn = {}

    def record(module, args, output):
        drawn["logits"] = output.logits

    handle = learned.head.register_forward_hook(record)
    torch.manual_seed(3)
    again = SliceInferer(samples=4, slice_batch=7).statistics(scan, learned)
    handle.remove()
    samples = drawn["logits"].softmax(2)  # (T, slices, C, h, w)
    assert samples.shape[:3] == (4, 7, 3) and torch.equal(found.mean, again.mean)
    full = torch.stack(
        [nn.functional.interpolate(one, (36, 40), mode="bilinear", align_corners=True) for one in samples]
    )
    assert torch.allclose(found.mean[0].movedim(-1, 0), full.mean(0), atol=1e-6)
    assert torch.allclose(found.entropy[0].movedim(-1, 0), predictive_entropy(full), atol=1e-5)
    assert torch.allclose(found.mutual_information[0].movedim(-1, 0), mutual_information(full), atol=1e-5)
    assert found.mutual_information.max() > 1e-6


@pytest.mark.parametrize("head", ["np", "dropout"])
def test_running_statistics_are_those_of_fewer_samples(scan, head):
    learned = network(head)
    torch.manual_seed(7)
    running = SliceInferer(samples=5, slice_batch=3).running_statistics(scan, learned, (1, 2, 5))
    for count, found in zip((1, 2, 5), running, strict=True):
        torch.manual_seed(7)
        alone = SliceInferer(samples=count, slice_batch=3).statistics(scan, learned)
        assert isinstance(found, MCStatistics) and torch.allclose(found.mean, alone.mean, atol=1e-6)
        assert torch.allclose(found.mutual_information, alone.mutual_information, atol=1e-5)
    assert running[0].seconds <= running[1].seconds <= running[2].seconds


@pytest.mark.parametrize("head", ["np", "dropout"])
def test_no_samples_is_one_prediction_without_chance(scan, head):
    inferer, learned = SliceInferer(samples=0), network(head)
    first, second = inferer(scan, learned), inferer(scan, learned)
    assert torch.equal(first, second) and torch.allclose(first.sum(1), torch.ones(1, 36, 40, 7), atol=1e-5)


@pytest.mark.parametrize("head", ["np", "dropout"])
def test_samples_differ_with_the_random_state(scan, head):
    learned = network(head)
    torch.manual_seed(0)
    first = SliceInferer(2)(scan, learned)
    torch.manual_seed(1)
    assert not torch.allclose(first, SliceInferer(2)(scan, learned), atol=1e-6)


def test_encoder_sees_every_slice_once_whatever_the_samples(scan):
    learned, seen = network("dropout"), []
    learned.encoder.register_forward_pre_hook(lambda module, args: seen.append(len(args[0])))
    SliceInferer(samples=6, slice_batch=4).statistics(scan, learned)
    assert seen == [4, 3]


def test_network_keeps_its_mode_and_its_banks(scan):
    learned = network("np").train()
    before = learned.head.latent_banks.rows.clone()
    SliceInferer(2)(scan, learned)
    assert all(module.training for module in learned.modules()) and isinstance(learned.head, NPSegHead)
    assert torch.equal(before, learned.head.latent_banks.rows)
