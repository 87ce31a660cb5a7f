"""Scans slice by slice: what a network is given, how its draws are joined, and statistics whose values are known."""

import math

import pytest
import torch
from torch import nn

from medssl.inference import SliceInferer
from medssl.networks.sampled import SampledNetwork


class Sees(SampledNetwork):
    """Logits that are the three channels, so that a prediction shows what the network was given."""

    def sampler(self, images):
        return lambda number: iter([images.softmax(1)[None]])


class InTurn(SampledNetwork):
    """Gives its probabilities one after the other; notes how many are asked for, and the mode of dropout."""

    def __init__(self, *probs):
        super().__init__()
        self.dropout, self.probs, self.asked, self.drops = nn.Dropout2d(0.5), probs, [], []

    def sampler(self, images):
        series = iter(range(1000))

        def draw(number):
            self.asked.append(number)
            self.drops.append(self.dropout.training)
            chosen = [torch.tensor(self.probs[next(series) % len(self.probs)]) for _ in range(max(1, number))]
            yield torch.stack(chosen)[:, None, :, None, None].expand(-1, len(images), -1, *images.shape[2:])

        return draw


class Coarse(SampledNetwork):
    """The mean of squares of two pixels a side, as a map of half the size."""

    def sampler(self, images):
        return lambda number: iter([nn.functional.avg_pool2d(images, 2).softmax(1)[None]])


def test_neighbours_are_seen_and_slices_come_back_in_their_place():
    scan = torch.arange(5.0).expand(1, 1, 4, 4, 5)
    statistics = SliceInferer(slice_batch=2).statistics(scan, Sees())
    around = torch.tensor([[0, 0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 4]]).float()
    assert torch.allclose(statistics.mean[0, :, 1, 2], around.softmax(1).T, atol=1e-6)


def test_scans_of_a_batch_stay_apart():
    scans = torch.rand(2, 1, 4, 6, 3)
    together = SliceInferer().statistics(scans, Sees())
    for number in range(2):
        alone = SliceInferer().statistics(scans[number : number + 1], Sees())
        assert torch.allclose(together.mean[number], alone.mean[0], atol=1e-6)


def test_entropy_and_mutual_information_of_two_opposite_samples_are_one_bit():
    statistics = SliceInferer(samples=2, slice_batch=4).statistics(
        torch.zeros(1, 1, 4, 4, 4), InTurn([1.0, 0.0], [0.0, 1.0])
    )
    assert torch.allclose(statistics.mean, torch.full((1, 2, 4, 4, 4), 0.5))
    assert torch.allclose(statistics.entropy, torch.ones(1, 4, 4, 4))
    assert torch.allclose(statistics.mutual_information, torch.ones(1, 4, 4, 4))


def test_entropy_and_mutual_information_have_their_golden_values():
    statistics = SliceInferer(samples=2, slice_batch=4).statistics(
        torch.zeros(1, 1, 4, 4, 4), InTurn([0.9, 0.1], [0.5, 0.5])
    )
    entropy = -(0.7 * math.log2(0.7) + 0.3 * math.log2(0.3))  # 0.881291
    of_samples = (-(0.9 * math.log2(0.9) + 0.1 * math.log2(0.1)) + 1) / 2  # 0.734498
    assert float(statistics.entropy.mean()) == pytest.approx(entropy, abs=1e-5) == pytest.approx(0.881291, abs=1e-5)
    assert float(statistics.mutual_information.mean()) == pytest.approx(entropy - of_samples, abs=1e-5)
    assert entropy - of_samples == pytest.approx(0.146793, abs=1e-5)


def test_maps_are_brought_to_the_grid_of_the_scan():
    scan = torch.rand(1, 1, 8, 6, 2)
    coarse = nn.functional.avg_pool2d(torch.stack([scan[0, 0, ..., place] for place in (0, 0, 1)])[None], 2)
    expected = nn.functional.interpolate(coarse.softmax(1), (8, 6), mode="bilinear", align_corners=True)[0]
    assert torch.allclose(SliceInferer(1)(scan, Coarse())[0, ..., 0], expected, atol=1e-6)


@pytest.mark.parametrize(("samples", "asked", "drops"), [(3, [3, 3], [True, True]), (0, [0, 0], [False, False])])
def test_every_batch_of_slices_is_drawn_as_often_as_asked_and_dropout_rests_without_samples(samples, asked, drops):
    network = InTurn([0.9, 0.1], [0.5, 0.5]).train()
    SliceInferer(samples, slice_batch=4)(torch.zeros(1, 1, 4, 4, 7), network)
    assert (network.asked, network.drops) == (asked, drops) and network.dropout.training


def test_more_samples_go_on_where_fewer_ended():
    network = InTurn([0.9, 0.1], [0.5, 0.5], [0.1, 0.9])
    running = SliceInferer(samples=3).running_statistics(torch.zeros(1, 1, 2, 2, 1), network, (1, 2, 3))
    assert network.asked == [1, 1, 1]
    assert [float(statistics.mean[0, 0, 0, 0, 0]) for statistics in running] == pytest.approx([0.9, 0.7, 0.5])


def test_settings_name_what_a_prediction_depends_on():
    inferer = SliceInferer(samples=3, slice_batch=2)
    assert inferer.settings() == inferer.bundle_settings() == {"samples": 3, "slice_batch": 2}
