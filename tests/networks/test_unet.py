"""The 3D-UNet of the thesis: its size, its shapes, slices that stay slices, dropout in the decoder alone."""

import pytest
import torch
from torch import nn

from medssl.networks import MCDropoutUNet3D, mc_dropout
from medssl.networks.unet import THESIS_WIDTHS

SMALL = (4, 6, 8)


def parameters(network: nn.Module) -> int:
    return sum(p.numel() for p in network.parameters())


@pytest.mark.parametrize(("channels", "count"), [(3, 9_598_466), (1, 9_596_738)])
def test_thesis_network_has_its_published_number_of_parameters(channels, count):
    assert parameters(MCDropoutUNet3D(in_channels=channels, out_channels=2)) == count


def test_thesis_network_runs_on_its_own_widths():
    network = MCDropoutUNet3D().eval()
    with torch.no_grad():
        features = network.encode(torch.randn(1, 1, 32, 48, 3))
    assert [f.shape[1] for f in features] == list(THESIS_WIDTHS)
    assert [tuple(f.shape[2:]) for f in features] == [(32, 48, 3), (16, 24, 3), (8, 12, 3), (4, 6, 3), (2, 3, 3)]


@pytest.mark.parametrize("size", [(16, 16, 8), (17, 23, 5), (8, 12, 1), (30, 9, 3), (5, 4, 2)])
def test_logits_have_the_size_of_the_scan_whether_divisible_or_not(size):
    logits = MCDropoutUNet3D(1, 2, SMALL)(torch.randn(2, 1, *size))
    assert logits.shape == (2, 2, *size)
    assert torch.isfinite(logits).all()


@pytest.mark.parametrize("size", [(15, 20, 3), (8, 8, 4), (17, 16, 1)])
def test_five_levels_take_scans_smaller_than_their_pooling(size):
    network = MCDropoutUNet3D(1, 2, (2, 3, 4, 5, 6)).eval()
    assert network(torch.randn(1, 1, *size)).shape == (1, 2, *size)


def test_last_row_of_an_odd_size_is_seen_at_every_level():
    scan = torch.zeros(1, 1, 17, 16, 2)
    features = [MCDropoutUNet3D(1, 2, SMALL).encoder.pool(scan)]
    scan[:, :, -1] = 1
    features.append(MCDropoutUNet3D(1, 2, SMALL).encoder.pool(scan))
    assert not torch.equal(*features)


@pytest.mark.parametrize(("channels", "classes"), [(1, 1), (2, 3), (4, 14)])
def test_any_number_of_channels_and_classes(channels, classes):
    network = MCDropoutUNet3D(channels, classes, SMALL)
    assert network(torch.randn(1, channels, 8, 8, 2)).shape == (1, classes, 8, 8, 2)


def test_depth_is_never_pooled():
    features = MCDropoutUNet3D(1, 2, SMALL).encode(torch.randn(1, 1, 16, 12, 7))
    assert [tuple(f.shape[2:]) for f in features] == [(16, 12, 7), (8, 6, 7), (4, 3, 7)]


def test_slices_stay_slices():
    """With convolutions that look at their own slice only and no norm, a change of one slice stays in it."""
    network = MCDropoutUNet3D(1, 2, SMALL, dropout=0.0).eval()
    for block in [*network.encoder.blocks, *network.decoder.blocks]:
        for index, layer in enumerate(block):
            if isinstance(layer, nn.Conv3d):
                layer.weight.data[..., [0, 2]] = 0
            elif isinstance(layer, nn.InstanceNorm3d):
                block[index] = nn.Identity()
    scan = torch.randn(1, 1, 16, 16, 6)
    other = scan.clone()
    other[..., 3] += 1
    with torch.no_grad():
        changed = (network(scan) - network(other)).abs().amax((0, 1, 2, 3))
    assert changed[3] > 0
    assert (changed[[0, 1, 2, 4, 5]] == 0).all()


def test_depth_is_the_last_axis():
    features = MCDropoutUNet3D(1, 2, SMALL).encode(torch.randn(1, 1, 8, 16, 32))
    assert tuple(features[-1].shape[2:]) == (2, 4, 32)


def test_dropout_is_in_the_decoder_only():
    network = MCDropoutUNet3D(1, 2, SMALL)
    assert not any(isinstance(m, nn.modules.dropout._DropoutNd) for m in network.encoder.modules())
    scan = torch.randn(2, 1, 16, 16, 4)
    with mc_dropout(network), torch.no_grad():
        first, second = network.encode(scan), network.encode(scan)
        assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
        assert not torch.equal(network.decode(first), network.decode(first))


def test_dropout_falls_on_whole_channels_of_every_decoder_block():
    network = MCDropoutUNet3D(1, 2, SMALL, dropout=0.5).train()
    inputs: list[torch.Tensor] = []
    for block in network.decoder.blocks:
        block.register_forward_pre_hook(lambda _, args: inputs.append(args[0].detach()))
    network(torch.rand(4, 1, 16, 16, 4) + 1)
    assert len(inputs) == len(SMALL) - 1
    for found in inputs:
        dropped = (found == 0).all(dim=(2, 3, 4))
        assert 0.2 < dropped.float().mean() < 0.8


def test_evaluation_is_deterministic_and_sampling_is_not():
    network = MCDropoutUNet3D(1, 2, SMALL).eval()
    scan = torch.randn(1, 1, 16, 16, 4)
    with torch.no_grad():
        assert torch.equal(network(scan), network(scan))
        with mc_dropout(network):
            assert not torch.equal(network(scan), network(scan))
        assert torch.equal(network(scan), network(scan))


def test_windows_of_one_batch_get_masks_of_their_own():
    network = MCDropoutUNet3D(1, 2, SMALL)
    scan = torch.randn(1, 1, 16, 16, 4).expand(3, -1, -1, -1, -1)
    with mc_dropout(network), torch.no_grad():
        first, second, third = network(scan)
    assert not torch.allclose(first, second)
    assert not torch.allclose(second, third)


def test_without_dropout_sampling_changes_nothing():
    network = MCDropoutUNet3D(1, 2, SMALL, dropout=0.0)
    scan = torch.randn(1, 1, 8, 8, 2)
    with mc_dropout(network), torch.no_grad():
        assert torch.equal(network(scan), network(scan))


def test_arguments_rebuild_the_network():
    network = MCDropoutUNet3D(2, 3, SMALL, dropout=0.1)
    again = MCDropoutUNet3D(**network.arguments)
    again.load_state_dict(network.state_dict())
    assert again.arguments == network.arguments
    assert again.decoder.dropout.p == 0.1
    scan = torch.randn(1, 2, 8, 8, 2)
    with torch.no_grad():
        assert torch.equal(again.eval()(scan), network.eval()(scan))


def test_weights_start_kaiming_normal_and_biases_zero():
    convolution = MCDropoutUNet3D().encoder.blocks[2][0]
    fan_in = convolution.in_channels * 27
    assert convolution.weight.std().item() == pytest.approx((2 / fan_in) ** 0.5, rel=0.05)
    assert not convolution.bias.any()


def test_gradients_reach_every_parameter():
    network = MCDropoutUNet3D(1, 2, SMALL)
    (network(torch.randn(2, 1, 16, 16, 4)) ** 2).mean().backward()
    assert all(p.grad is not None for p in network.parameters())
    assert all(p.grad.abs().sum() > 0 for n, p in network.named_parameters() if n.endswith("weight"))


def test_one_level_is_no_unet():
    with pytest.raises(ValueError, match="at least two levels"):
        MCDropoutUNet3D(widths=(8,))
