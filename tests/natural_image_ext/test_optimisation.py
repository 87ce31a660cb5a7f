"""The learning rate's curve against its formula, and which parameters decay."""

import math

import pytest
import torch
from torch import nn

from natural_image_ext.networks import build_classifier, build_segmentation
from natural_image_ext.optimisation import CosineDecay, encoder_and_rest, parameter_groups


def test_learning_rate_follows_seven_sixteenths_of_a_cosine():
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.03)
    scheduler = CosineDecay(optimizer, T_max=8)
    found = []
    for _ in range(10):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    expected = [0.03 * math.cos(7 * math.pi * min(k, 8) / (16 * 8)) for k in range(10)]
    assert found == pytest.approx(expected)
    assert found[-1] == pytest.approx(0.03 * 0.19509, rel=1e-4)


def test_a_resumed_schedule_goes_on_where_it_stopped():
    rates = []
    for stop in (5, 3):
        optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1)
        scheduler = CosineDecay(optimizer, T_max=6)
        for step in range(5):
            if step == stop:
                saved = scheduler.state_dict()
                scheduler = CosineDecay(optimizer, T_max=6)
                scheduler.load_state_dict(saved)
            optimizer.step()
            scheduler.step()
        rates.append(optimizer.param_groups[0]["lr"])
    assert rates[0] == pytest.approx(rates[1])


def test_norms_and_biases_do_not_decay_and_every_parameter_is_in_one_group():
    network = build_classifier("wrn_10_1", 4)
    groups = parameter_groups(network, 5e-4)
    assert [group["weight_decay"] for group in groups] == [5e-4, 0.0]
    decaying = {id(parameter) for parameter in groups[0]["params"]}
    for name, parameter in network.named_parameters():
        assert (id(parameter) in decaying) == (name.endswith("weight") and "norm" not in name), name
    assert sum(len(group["params"]) for group in groups) == len(list(network.parameters()))


def test_all_but_the_encoder_learns_faster():
    method = nn.Module()
    method.network = build_segmentation("resnet18", 3, "plain", channels=8)
    slow, fast = encoder_and_rest(method, 0.01, head_factor=10.0)
    encoder = {id(parameter) for parameter in method.network.encoder.parameters()}
    assert {id(parameter) for parameter in slow["params"]} == encoder and slow["lr"] == 0.01
    assert len(slow["params"]) + len(fast["params"]) == len(list(method.parameters())) and fast["lr"] == 0.1
