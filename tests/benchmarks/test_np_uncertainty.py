"""The benchmark compares what it says it does: same backbone, T latent vectors against T passes with dropout."""

import torch


def test_all_sides_have_the_same_backbone_and_give_probabilities(benchmark):
    ours, peer, plain = benchmark.networks("WRN-28-2")
    assert ours.backbone.state_dict().keys() == peer.backbone.state_dict().keys()
    assert plain.backbone is ours.backbone
    images = torch.randn(2, 3, 32, 32)
    for network in (ours, peer, plain):
        probs = benchmark.SampledInferer(3)(images, network)
        assert probs.shape == (2, 10) and torch.allclose(probs.sum(-1), torch.ones(2), atol=1e-5)


def test_number_of_backbone_passes_is_one_against_t(benchmark):
    passes = []
    for network in benchmark.networks("WRN-28-2"):
        count = [0]
        network.backbone.register_forward_hook(lambda *_, count=count: count.__setitem__(0, count[0] + 1))
        benchmark.SampledInferer(4)(torch.randn(2, 3, 32, 32), network)
        passes.append(count[0])
    assert passes[:2] == [1, 4]


def test_rows_are_yielded_for_every_t_and_peer(benchmark, monkeypatch):
    monkeypatch.setattr(benchmark, "BATCH", 2)
    rows = list(benchmark.measure(repeats=1))
    assert [row[0].split(", ")[-1] for row in rows] == ["T = 1", "T = 1", "T = 20", "T = 20"]
    assert [row[1] for row in rows] == ["MC dropout", "one deterministic pass"] * 2
    assert [row[4] for row in rows] == [None, None, 25.0, 1 / 1.15]
