"""The inferer against the plain definition: T passes at every window, each of them a sample of its voxels."""

import math
import resource

import pytest
import torch
from monai.inferers import sliding_window_inference
from torch import nn

from medssl.core.errors import MedsslError
from medssl.core.seeding import derive_seed
from medssl.inference import MCDropoutInferer
from medssl.networks import MCDropoutUNet3D, mc_dropout
from medssl.networks.mc_dropout import seeded_dropout
from medssl.uncertainty import entropy_of, mutual_information, predictive_entropy

WINDOW, STRIDE = (16, 16, 4), (8, 8, 2)


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return MCDropoutUNet3D(1, 3, widths=(4, 8))


@pytest.fixture(scope="module")
def image():
    return torch.rand(1, 1, 20, 24, 7, generator=torch.Generator().manual_seed(1))


def test_without_dropout_it_is_monais_sliding_window_inference(network, image):
    found = MCDropoutInferer(WINDOW, STRIDE, samples=0, mode="reference").statistics(image, network)
    with torch.no_grad():
        network.eval()
        expected = sliding_window_inference(image, WINDOW, 4, lambda x: network(x).softmax(1), overlap=0.5)
    assert torch.allclose(found.mean, expected, atol=1e-6)
    assert torch.allclose(found.entropy, entropy_of(expected), atol=1e-5)


def test_equals_stacked_passes_of_the_window_that_is_the_scan(network):
    image = torch.rand(1, 1, *WINDOW)
    torch.manual_seed(3)
    found = MCDropoutInferer(WINDOW, STRIDE, samples=5, mode="reference").statistics(image, network)
    torch.manual_seed(3)
    seed = str(int(torch.randint(2**31, ())))
    with torch.no_grad(), seeded_dropout(network, [derive_seed(seed, 0, 0, 0, sample) for sample in range(5)]):
        stacked = network(image.expand(5, -1, -1, -1, -1)).softmax(1)[:, None]
    assert torch.allclose(found.mean, stacked.mean(0), atol=1e-6)
    assert torch.allclose(found.entropy, predictive_entropy(stacked), atol=1e-5)
    assert torch.allclose(found.mutual_information, mutual_information(stacked), atol=1e-5)


def test_mean_is_that_of_stitched_passes_over_the_whole_scan(network, image):
    torch.manual_seed(3)
    found = MCDropoutInferer(WINDOW, STRIDE, samples=60, mode="reference").statistics(image, network)
    with torch.no_grad(), mc_dropout(network):
        passes = [
            sliding_window_inference(image, WINDOW, 4, lambda x: network(x).softmax(1), overlap=0.5) for _ in range(60)
        ]
    difference = (found.mean - torch.stack(passes).mean(0)).abs()
    largest_standard_error = (2 * 0.25 / 60) ** 0.5  # of a difference of two means of 60 numbers in [0, 1]
    assert difference.mean() < 0.02 and difference.max() < 4 * largest_standard_error


def test_statistics_are_probabilities_and_bits_on_the_inputs_grid(network, image):
    found = MCDropoutInferer(WINDOW, STRIDE, samples=3).statistics(image, network)
    assert found.mean.shape == (1, 3, 20, 24, 7) and found.entropy.shape == (1, 20, 24, 7)
    assert torch.allclose(found.mean.sum(1), torch.ones(1, 20, 24, 7), atol=1e-5)
    assert found.entropy.min() >= 0 and found.entropy.max() <= math.log2(3) + 1e-5
    assert (found.mutual_information <= found.entropy + 1e-5).all() and found.mutual_information.max() > 0


@pytest.mark.parametrize("window", [16, 48, 80, 96, 112, 128])
@pytest.mark.parametrize("stride", [4, 8, 16])
def test_windows_stand_exactly_one_stride_apart(window, stride):
    starts = []

    class Record(nn.Module):
        def forward(self, x):
            starts.extend(x[:, 0, 0, 0, 0].tolist())  # the image holds its own row numbers
            return torch.zeros(len(x), 2, *x.shape[2:])

    rows = torch.arange(window + 3 * stride).float()[None, None, :, None, None].expand(1, 1, -1, 4, 4)
    inferer = MCDropoutInferer((window, 4, 4), (stride, 4, 4), samples=0, window_batch=4, mode="reference")
    inferer.statistics(rows, Record())
    assert starts == [0, stride, 2 * stride, 3 * stride]


def test_zero_samples_is_one_pass_without_dropout(network, image):
    inferer = MCDropoutInferer(WINDOW, WINDOW, samples=0, mode="reference")
    first, second = inferer.statistics(image[..., :4], network), inferer.statistics(image[..., :4], network)
    assert torch.equal(first.mean, second.mean)
    assert first.mutual_information[:, :4, :8].max() < 1e-6  # one window lies there, and so one sample


def test_called_as_monai_inferer_gives_the_mean(network, image):
    inferer = MCDropoutInferer(WINDOW, STRIDE, samples=2)
    torch.manual_seed(0)
    mean = inferer(image, network)
    torch.manual_seed(0)
    assert torch.equal(mean, inferer.statistics(image, network).mean)


def test_network_keeps_its_mode(network, image):
    network.train()
    MCDropoutInferer(WINDOW, STRIDE, samples=1)(image, network)
    assert all(module.training for module in network.modules())


class RunsOutOfMemory(nn.Module):
    """Fails like an allocator when more than `limit` windows come at once."""

    def __init__(self, limit):
        super().__init__()
        self.limit, self.seen = limit, []

    def forward(self, x):
        self.seen.append(len(x))
        if len(x) > self.limit:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 99 bytes")
        return torch.zeros(len(x), 2, *x.shape[2:])


def test_out_of_memory_is_tried_once_more_with_fewer_windows(image):
    network = RunsOutOfMemory(limit=2)
    found = MCDropoutInferer(WINDOW, STRIDE, samples=1, window_batch=8, mode="reference").statistics(image, network)
    assert network.seen[0] == 8 and set(network.seen[1:]) <= {1, 2} and found.mean.shape[1] == 2


def test_out_of_memory_twice_is_a_clear_error(image):
    network = RunsOutOfMemory(limit=0)
    with pytest.raises(MedsslError, match="more memory"):
        MCDropoutInferer(WINDOW, STRIDE, samples=1, window_batch=8, mode="reference").statistics(image, network)
    assert network.seen == [8, 2]


def test_other_errors_are_not_taken_for_memory(network):
    with pytest.raises(RuntimeError, match="channels"):
        MCDropoutInferer(WINDOW, STRIDE, samples=1).statistics(torch.rand(1, 2, 16, 16, 4), network)


@pytest.mark.slow
def test_memory_does_not_grow_with_samples(network):
    image = torch.rand(1, 1, 96, 96, 48)

    def peak_mib(samples):
        MCDropoutInferer((32, 32, 16), (32, 32, 16), samples).statistics(image, network)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    few = peak_mib(2)
    assert peak_mib(40) - few < 40 * image.numel() * 4 * 3 / 2**20 / 4
