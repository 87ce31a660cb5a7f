"""Wide residual networks: parameter counts of the notes, shapes, and resolution of every stage."""

import pytest
import torch

from medssl.core.errors import ConfigError
from natural_image_ext.networks import WideResNet, build_backbone, wrn_28_2, wrn_28_8, wrn_37_2
from natural_image_ext.networks.backbones import width_of


@pytest.mark.parametrize(
    ("build", "parameters", "features"),
    [(wrn_28_2, 1_468_352, 128), (wrn_28_8, 23_357_792, 512), (wrn_37_2, 5_931_200, 256)],
)
def test_parameter_counts_and_features(build, parameters, features):
    with torch.device("meta"):
        network = build()
    assert sum(p.numel() for p in network.parameters()) == parameters
    assert network.num_features == features


def test_images_become_pooled_features_and_learn():
    network = WideResNet(1, (4, 8), (1, 2), stem=4)
    images = torch.randn(3, 3, 16, 16)
    features = network(images)
    assert features.shape == (3, 8)
    assert network.stages(network.stem(images)).shape == (3, 8, 8, 8)
    features.sum().backward()
    assert all(p.grad is not None for p in network.parameters())


def test_depth_counts_the_convolutions():
    network = wrn_28_2()
    in_path = [m for m in network.modules() if isinstance(m, torch.nn.Conv2d) and m.kernel_size == (3, 3)]
    assert len(in_path) == 25  # 28 with the shortcuts' three 1x1 convolutions


def test_network_of_stl10_halves_its_maps_in_every_stage():
    maps = wrn_37_2().eval()
    sizes = []
    for stage in maps.stages:
        stage.register_forward_hook(lambda *arguments: sizes.append(arguments[2].shape[-1]))
    maps(torch.zeros(1, 3, 96, 96))
    assert sizes == [48, 24, 12, 6]


@pytest.mark.parametrize(("name", "features"), [("resnet18", 512), ("mobilenetv3_small_100", 1024)])
def test_networks_of_timm_tell_the_width_of_their_features(name, features):
    backbone = build_backbone(name).eval()
    assert width_of(backbone) == features == backbone(torch.zeros(1, 3, 32, 32)).shape[1]
    dropped = build_backbone(name, dropout=0.5).eval()
    assert width_of(dropped) == features


def test_unknown_backbone_is_named():
    with pytest.raises(ConfigError, match="'wrn_1' is unknown"):
        build_backbone("wrn_1")
