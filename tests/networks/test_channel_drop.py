"""Leaving dropped channels out gives what dropout gives, whatever is dropped."""

import pytest
import torch
from torch import nn

from medssl.networks import MCDropoutUNet3D
from medssl.networks.channel_drop import conv3d
from medssl.networks.mc_dropout import dropout_mask, generator_of, mc_dropout, seeded_dropout


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return MCDropoutUNet3D(1, 3, widths=(4, 8, 8)).eval()


@pytest.fixture(scope="module")
def windows():
    return torch.rand(3, 1, 14, 12, 3, generator=torch.Generator().manual_seed(1))


def window_features(network, window):
    return network.encode(window[None])


@pytest.mark.parametrize("seed", range(20))
def test_kept_channels_give_the_logits_of_dropout_with_the_same_masks(network, windows, seed):
    with torch.inference_mode():
        features = window_features(network, windows[0])
        masks = network.draw_masks(generator_of(seed))
        with seeded_dropout(network, [seed]):
            dropped = network(windows[:1])
        torch.testing.assert_close(network.decode(features, masks), dropped, atol=1e-5, rtol=0)
        torch.testing.assert_close(network.decode_kept(features, masks), dropped, atol=1e-5, rtol=0)


@pytest.mark.parametrize("block", [0, 1])
@pytest.mark.parametrize("kept", ["nothing", "nothing from below", "nothing from beside", "all"])
def test_no_channel_or_every_channel_may_be_kept(network, windows, block, kept):
    masks = [torch.ones(1, 16), torch.ones(1, 12)]
    if kept != "all":
        parts = {"nothing": slice(None), "nothing from below": slice(0, 8), "nothing from beside": slice(8, None)}
        masks[block][:, parts[kept]] = 0
    with torch.inference_mode():
        features = window_features(network, windows[0])
        torch.testing.assert_close(
            network.decode_kept(features, masks), network.decode(features, masks), atol=1e-5, rtol=0
        )


def test_a_row_draws_the_same_masks_whatever_is_beside_it(network, windows):
    with torch.inference_mode(), mc_dropout(network):
        with seeded_dropout(network, [5, 6, 7]):
            together = network(windows)
        with seeded_dropout(network, [7]):
            alone = network(windows[2:])
        unseeded = network(windows)
    torch.testing.assert_close(together[2:], alone, atol=1e-5, rtol=0)
    assert not torch.allclose(unseeded, together, atol=1e-3)  # after the block dropout draws as before


def test_rows_that_a_network_makes_of_slices_belong_to_their_pass():
    layer = nn.Dropout2d(0.5)
    slices = torch.ones(2 * 5, 8, 2, 2)  # five slices of each of two windows
    with seeded_dropout(layer, [1, 2]):
        both = layer(slices)
    with seeded_dropout(layer, [2]):
        second = layer(slices[5:])
    assert torch.equal(both[5:], second) and len(both.unique(dim=0)) > 2


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_masks_keep_as_many_channels_as_dropout_and_scale_them_alike(p):
    mask = dropout_mask((20_000,), p, generator_of(0))
    theirs = nn.functional.dropout3d(torch.ones(1, 20_000, 1, 1, 1), p).flatten()
    assert set(mask.tolist()) == set(theirs.tolist())
    assert mask.mean().item() == pytest.approx(theirs.mean().item(), abs=0.03)


def test_convolution_is_torchs_at_a_size_where_torch_chooses_another_kernel():
    conv = nn.Conv3d(5, 7, 3, padding=1)
    x = torch.rand(1, 5, 8, 9, 3)
    with torch.inference_mode():
        torch.testing.assert_close(conv3d(x, conv.weight, conv.bias), conv(x), atol=1e-5, rtol=0)
