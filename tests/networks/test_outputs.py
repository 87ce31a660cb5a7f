"""What a network gives is checked before a training: channels, sizes, further outputs; nothing is changed by it."""

import copy

import pytest
import torch
from monai.networks import nets
from torch import nn

from medssl.core.errors import ConfigError
from medssl.networks import MCDropoutUNet3D, check_network, give_main_output, main_output

PATCH = (64, 32, 32)
STRIDED = {"spatial_dims": 3, "kernel_size": [3] * 3, "upsample_kernel_size": [2] * 2, "filters": [4, 8, 8]}
NETWORKS = {
    "MCDropoutUNet3D": lambda: MCDropoutUNet3D(1, 2, widths=(4, 8)),
    "VNet": lambda: nets.VNet(3, 1, 2),
    "UNet": lambda: nets.UNet(3, 1, 2, channels=(4, 8), strides=(2,)),
    "SegResNet": lambda: nets.SegResNet(3, 8, 1, 2),
    "DynUNet": lambda: nets.DynUNet(in_channels=1, out_channels=2, strides=[1, 2, 2], **STRIDED),
    "SwinUNETR": lambda: nets.SwinUNETR(1, 2, depths=(1, 1, 1, 1), feature_size=12),
    "BasicUNetPlusPlus": lambda: nets.BasicUNetPlusPlus(3, 1, 2, features=(4, 4, 4, 4, 4, 4)),
}


class LooksAtNumbers(nn.Module):
    """Draws at random and reads a number, as sizes alone have none; counts in a buffer while it trains."""

    def __init__(self):
        super().__init__()
        self.classify, self.norm = nn.Conv3d(1, 2, 1), nn.BatchNorm3d(2)

    def forward(self, x):
        return self.norm(self.classify(x)) * (1 + torch.rand(()).item()) + x.sum().item()


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_of_monai_and_our_own_pass(name):
    check_network(NETWORKS[name](), PATCH, num_classes=2, in_channels=1)


@pytest.mark.parametrize("make", [NETWORKS["VNet"], LooksAtNumbers], ids=["sizes alone", "numbers"])
def test_the_check_changes_neither_network_nor_random_state(make):
    network = make().train()
    weights, random_state = copy.deepcopy(network.state_dict()), torch.get_rng_state()
    check_network(network, (16, 16, 16), num_classes=2)
    assert torch.equal(torch.get_rng_state(), random_state)
    assert all(torch.equal(value, weights[name]) for name, value in network.state_dict().items())
    assert all(module.training for module in network.modules())


@pytest.mark.parametrize(
    ("name", "patch", "way_out"),
    [("VNet", (20, 16, 16), r"\[32, 16, 16\]"), ("SwinUNETR", (64, 64, 16), r"\[64, 64, 32\]")],
)
def test_patch_that_strides_do_not_divide_is_refused_with_one_that_passes(name, patch, way_out):
    with pytest.raises(ConfigError, match=rf"network {name}: .*\({patch[0]}, .*--patch_size {way_out}"):
        check_network(NETWORKS[name](), patch, num_classes=2)


def test_wrong_numbers_of_channels_are_refused_by_name():
    with pytest.raises(
        ConfigError, match=r"network UNet: gives 2 channels, the data have 4 classes.*out_channels to 4"
    ):
        check_network(NETWORKS["UNet"](), PATCH, num_classes=4)
    with pytest.raises(ConfigError, match=r"network UNet: a patch of 3 channels.*Set its in_channels to 3"):
        check_network(NETWORKS["UNet"](), PATCH, num_classes=2, in_channels=3)


def test_output_of_another_size_is_refused():
    smaller = nets.DynUNet(in_channels=1, out_channels=2, strides=[2, 2, 2], **STRIDED)
    with pytest.raises(ConfigError, match=r"network DynUNet: gives \(32, 16, 16\) voxels.*first stride is 1"):
        check_network(smaller, PATCH, num_classes=2)


def test_deep_supervision_is_refused_for_its_outputs_are_not_trained():
    supervised = nets.DynUNet(
        in_channels=1, out_channels=2, strides=[1, 2, 2, 2], deep_supervision=True,
        **{**STRIDED, "kernel_size": [3] * 4, "upsample_kernel_size": [2] * 3, "filters": [4, 8, 8, 8]},
    )  # fmt: skip
    with pytest.raises(ConfigError, match=r"DynUNet: deep_supervision True.*Set deep_supervision to false"):
        check_network(supervised, PATCH, num_classes=2)
    with pytest.raises(ConfigError, match=r"SegResNetDS: dsdepth 2.*Set dsdepth to 1"):
        check_network(nets.SegResNetDS(3, 8, 1, 2, dsdepth=2), PATCH, num_classes=2)


def test_output_that_is_no_tensor_is_refused():
    class Names(nn.Module):
        def forward(self, x):
            return {"logits": x}

    with pytest.raises(ConfigError, match="network Names: gives a dict"):
        check_network(Names(), PATCH, num_classes=2)


def test_main_output_is_the_tensor_or_the_first_of_several():
    first, second = torch.zeros(1, 2, 4, 4, 4), torch.ones(1, 2, 2, 2, 2)
    assert main_output(first) is first
    assert main_output([first, second]) is first and main_output((first, second)) is first


def test_network_with_a_list_of_outputs_gives_the_main_one_and_keeps_its_names():
    network = NETWORKS["BasicUNetPlusPlus"]().eval()
    names, image = list(network.state_dict()), torch.rand(1, 1, 32, 16, 16)
    with torch.no_grad():
        (expected,) = network(image)
        found = give_main_output(give_main_output(network))(image)
        copied = copy.deepcopy(network)(image)
    assert torch.equal(found, expected) and torch.equal(copied, expected)
    assert list(network.state_dict()) == names and len(network._forward_hooks) == 1
