"""Validation says how long the latents of unseen scans are."""

import pytest
import torch
from ignite.engine import Engine

from medssl.engine.latent_length import LatentLength
from medssl.methods.pseudo_labels import PseudoLabels
from medssl.networks import LRL, MCDropoutUNet3D

SMALL = {"patch_size": (16, 16, 4), "widths": (4, 8), "latent_dim": 5}


def metrics_of(teacher, batches):
    evaluator = Engine(lambda engine, batch: PseudoLabels(teacher, 2)(batch))
    LatentLength(teacher).attach(evaluator)
    for _ in range(2):  # the second time counts for itself
        evaluator.run(batches)
    return evaluator.state.metrics


def test_mean_over_all_slices_of_all_batches_is_a_metric():
    torch.manual_seed(0)
    teacher = LRL(1, 2, **SMALL).eval()
    batches = [torch.randn(2, 1, 16, 16, 4), torch.randn(1, 1, 16, 16, 8)]
    lengths = [teacher.latent_of(teacher.image_encoder(batch)[-1]).v.square().sum(-1).flatten() for batch in batches]
    assert metrics_of(teacher, batches) == {"v_squared": pytest.approx(torch.cat(lengths).mean().item(), rel=1e-4)}
    assert not teacher.to_v._forward_hooks


def test_bounded_v_is_measured_as_it_is_used():
    teacher = LRL(1, 2, **SMALL, v_bound=0.5).eval()
    assert 0 < metrics_of(teacher, [torch.randn(1, 1, 16, 16, 4)])["v_squared"] <= 0.25


@pytest.mark.parametrize("teacher", ["independent", "without z", "unet"])
def test_networks_without_v_have_no_such_metric(teacher):
    networks = {
        "independent": lambda: LRL(1, 2, **SMALL, latent="independent"),
        "without z": lambda: LRL(1, 2, **SMALL, with_z=False),
        "unet": lambda: MCDropoutUNet3D(1, 2, (4, 8)),
    }
    network = networks[teacher]().eval()
    evaluator = Engine(lambda engine, batch: None if teacher == "unet" else PseudoLabels(network, 2)(batch))
    LatentLength(network).attach(evaluator)
    evaluator.run([torch.randn(1, 1, 16, 16, 4)])
    assert evaluator.state.metrics == {}
