"""What the benchmark compares gives the same probabilities; no time is asserted."""

import torch


def test_plain_form_and_ours_are_the_same_prediction(benchmark):
    networks = benchmark.sides("resnet18")
    images = torch.randn(1, 3, 33, 33)
    found = {}
    for name, network in networks.items():
        torch.manual_seed(0)
        found[name] = benchmark.SampledSceneInferer(3)(images, network)
    assert torch.allclose(found["ours"], found["plain form"], atol=1e-5)
    assert found["MC dropout"].shape == found["ours"].shape == (1, 21, 33, 33)
    assert benchmark.cpu_seconds(networks["ours"], images, 1) > 0
