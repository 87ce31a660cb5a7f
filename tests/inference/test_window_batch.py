"""Windows at a time: a few small ones, one large one, no more than memory holds."""

import pytest
import torch
from torch import nn

from medssl.inference import window_batch
from medssl.inference.window_batch import bytes_given_out, windows_at_a_time
from medssl.networks import MCDropoutUNet3D


@pytest.fixture
def network():
    return nn.Sequential(nn.Conv3d(1, 3, 1), nn.ReLU(), nn.Conv3d(3, 2, 1))


def test_bytes_are_those_of_the_input_and_of_every_layers_output(network):
    assert bytes_given_out(network, (1, 1, 4, 4, 2)) == 4 * 32 * (1 + 3 + 3 + 2)
    assert not any(module._forward_hooks for module in network.modules())


@pytest.mark.parametrize(
    ("window", "expected"), [((8, 8, 4), 4), ((64, 64, 4), 4), ((96, 96, 4), 2), ((128, 128, 4), 1)]
)
def test_small_windows_go_together_and_large_ones_alone(network, window, expected):
    assert windows_at_a_time(network, torch.zeros(1, 1, *window), window) == expected


@pytest.mark.parametrize(("windows_that_fit", "expected"), [(0.1, 1), (2.5, 2), (100, 4)])
def test_no_more_than_half_of_the_free_memory_is_used(network, monkeypatch, windows_that_fit, expected):
    cost = bytes_given_out(network, (1, 1, 8, 8, 4))
    monkeypatch.setattr(window_batch, "free_bytes", lambda device: int(2 * windows_that_fit * cost))
    assert windows_at_a_time(network, torch.zeros(1, 1, 30, 30, 9), (8, 8, 4)) == expected


def test_network_that_looks_at_numbers_gets_one_window_at_a_time():
    class Looks(nn.Module):
        def forward(self, x):
            return x if x.sum().item() > 0 else -x

    assert windows_at_a_time(Looks(), torch.zeros(1, 1, 8, 8, 4), (8, 8, 4)) == 1


def test_thesis_network_is_not_touched_by_the_estimate():
    network = MCDropoutUNet3D(1, 2, widths=(4, 8)).train()
    before = network.classifier.weight.clone()
    assert windows_at_a_time(network, torch.zeros(1, 1, 16, 16, 4), (16, 16, 4)) == 4
    assert torch.equal(network.classifier.weight, before) and network.training


def test_free_memory_of_this_machine_is_known():
    assert 0 < window_batch.free_bytes(torch.device("cpu")) < 2**50
