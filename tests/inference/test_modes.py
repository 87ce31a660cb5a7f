"""Three ways to the same outputs: exact is reference pass by pass, fast agrees where windows do not matter."""

import pytest
import torch
from torch import nn

from medssl.core.errors import ConfigError
from medssl.core.prediction_options import MODES
from medssl.inference import MCDropoutInferer
from medssl.networks import MCDropoutUNet3D
from medssl.uncertainty import mutual_information, predictive_entropy

WINDOW, STRIDE = (16, 16, 4), (8, 8, 2)
EACH_MODE = pytest.mark.parametrize("mode", MODES)


class Pointwise(nn.Module):
    """A voxel's logits depend on that voxel alone, and on what is dropped: no window can matter."""

    def __init__(self, p=0.5, layer=nn.Dropout3d):
        super().__init__()
        self.dropout, self.mix = layer(p), nn.Conv3d(8, 3, 1)

    def forward(self, x):
        return self.mix(self.dropout(torch.cat([torch.sin(x * k) for k in range(1, 9)], dim=1)))


class CountsPasses(MCDropoutUNet3D):
    """A small network that counts how often its parts run."""

    def __init__(self):
        super().__init__(1, 3, widths=(4, 8))
        self.windows_encoded = self.whole_passes = 0

    def encode(self, x):
        self.windows_encoded += len(x)
        return super().encode(x)

    def decode(self, features, masks=None):
        self.whole_passes += len(features[0])
        return super().decode(features, masks)


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return MCDropoutUNet3D(1, 3, widths=(4, 8, 8))


@pytest.fixture(scope="module")
def image():
    return torch.rand(1, 1, 20, 24, 7, generator=torch.Generator().manual_seed(1))


def statistics(image, network, mode, samples=5, seed=3, **settings):
    torch.manual_seed(seed)
    return MCDropoutInferer(WINDOW, STRIDE, samples, mode=mode, **settings).statistics(image, network)


def assert_same(first, second, atol=1e-5):
    for name in ("mean", "entropy", "mutual_information"):
        torch.testing.assert_close(getattr(first, name), getattr(second, name), atol=atol, rtol=0)


@pytest.mark.parametrize("seed", range(4))
def test_exact_is_reference_with_the_same_seed(network, image, seed):
    assert_same(*(statistics(image, network, mode, seed=seed) for mode in ("reference", "exact")))


def test_another_seed_is_another_result(network, image):
    found = [statistics(image, network, "exact", seed=seed).mean for seed in (3, 4)]
    assert not torch.allclose(*found, atol=1e-3)


@EACH_MODE
@pytest.mark.parametrize("window_batch", [1, 3, 50, "auto"])
def test_windows_at_a_time_do_not_change_the_samples(network, image, mode, window_batch):
    assert_same(statistics(image, network, mode), statistics(image, network, mode, window_batch=window_batch))


@EACH_MODE
def test_scans_of_a_batch_are_those_alone_but_draw_their_own_samples(network, image, mode):
    both = statistics(torch.cat([image, image]), network, mode)
    torch.testing.assert_close(both.mean[:1], statistics(image, network, mode).mean, atol=1e-6, rtol=0)
    assert not torch.allclose(both.mean[0], both.mean[1], atol=1e-3)


def test_modes_are_equal_without_dropout_where_windows_do_not_matter(image):
    network = Pointwise(p=0.0)
    expected = network(image).softmax(1)
    for mode in MODES:
        found = statistics(image, network, mode)
        torch.testing.assert_close(found.mean, expected, atol=1e-6, rtol=0)
        assert found.mutual_information.max() < 1e-5


@pytest.mark.parametrize("layer", [nn.Dropout3d, nn.Dropout])
@EACH_MODE
def test_means_over_many_samples_agree_in_every_mode(image, mode, layer):
    torch.manual_seed(0)
    network = Pointwise(layer=layer)
    found = statistics(image, network, mode, samples=200)
    with torch.inference_mode():
        network.train()
        stacked = torch.stack([network(image).softmax(1) for _ in range(1000)])
    torch.testing.assert_close(found.mean, stacked.mean(0), atol=0.06, rtol=0)
    torch.testing.assert_close(found.entropy, predictive_entropy(stacked), atol=0.1, rtol=0)
    torch.testing.assert_close(found.mutual_information, mutual_information(stacked), atol=0.1, rtol=0)


@EACH_MODE
def test_image_smaller_than_the_window_is_padded_as_by_monai(network, mode):
    image = torch.rand(1, 1, 11, 24, 3)
    padded = nn.functional.pad(image, (0, 1, 0, 0, 2, 3))
    whole, part = statistics(padded, network, mode), statistics(image, network, mode)
    assert part.mean.shape[2:] == (11, 24, 3)
    torch.testing.assert_close(part.mean, whole.mean[:, :, 2:13, :, :3], atol=1e-6, rtol=0)


def test_work_is_shared_in_exact_and_fast_only(image):
    windows = 2 * 2 * 3
    done = {}
    for mode in MODES:
        network = CountsPasses()
        statistics(image, network, mode, samples=4, window_batch=2)
        done[mode] = (network.windows_encoded, network.whole_passes)
    assert done["reference"] == (windows * 4, windows * 4) and done["exact"] == (windows, 0)
    assert done["fast"] == (len(MCDropoutInferer(WINDOW, STRIDE, 4, mode="fast").plan((20, 24, 7), 4)), 0)


@EACH_MODE
def test_zero_samples_is_one_pass_a_window_without_dropout(network, image, mode):
    first, second = statistics(image, network, mode, samples=0), statistics(image, network, mode, samples=0, seed=5)
    assert torch.equal(first.mean, second.mean)


def test_unknown_mode_and_back_end_are_refused():
    with pytest.raises(ConfigError, match=r"mode 'quick' is unknown\. Known: exact, fast, reference"):
        MCDropoutInferer(WINDOW, STRIDE, mode="quick")
    with pytest.raises(ConfigError, match=r"backend 'tensorrt' is unknown\. Known: compile, eager, int8"):
        MCDropoutInferer(WINDOW, STRIDE, backend="tensorrt")
