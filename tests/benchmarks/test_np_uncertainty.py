"""The benchmark compares what it says it does: same backbone, T latent vectors against T passes with dropout."""

import torch


def test_both_sides_have_the_same_backbone_and_give_probabilities(benchmark):
    ours, peer = benchmark.pair("WRN-28-2")
    assert ours.backbone.state_dict().keys() == peer.backbone.state_dict().keys()
    images = torch.randn(2, 3, 32, 32)
    for network in (ours, peer):
        probs = benchmark.SampledInferer(3)(images, network)
        assert probs.shape == (2, 10) and torch.allclose(probs.sum(-1), torch.ones(2), atol=1e-5)


def test_number_of_backbone_passes_is_one_against_t(benchmark):
    passes = []
    for network in benchmark.pair("WRN-28-2"):
        count = [0]
        network.backbone.register_forward_hook(lambda *_, count=count: count.__setitem__(0, count[0] + 1))
        benchmark.SampledInferer(4)(torch.randn(2, 3, 32, 32), network)
        passes.append(count[0])
    assert passes == [1, 4]


def test_rows_are_yielded_for_every_t(benchmark):
    rows = list(benchmark.measure(names=("WRN-28-2",), values=(1, 2), repeats=1))
    assert [row[0].split(", ")[-1] for row in rows] == ["T = 1", "T = 2"] and all(row[2] > 0 < row[3] for row in rows)
