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
    assert found["one deterministic pass"].shape == (1, 21, 33, 33)


def test_every_t_has_a_row_for_each_peer(benchmark):
    rows = list(benchmark.measure((1, 5), repeats=1, encoder="resnet18", size=33))
    assert [row[1] for row in rows] == ["plain form", "MC dropout", "one deterministic pass"] * 2
    assert [row[4] for row in rows] == [None] * 5 + [1 / 1.6]
