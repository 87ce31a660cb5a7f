"""Wide residual networks: parameter counts of the notes, shapes, and resolution of every stage."""

import pytest
import torch

from natural_image_ext.networks import WideResNet, wrn_28_2, wrn_28_8, wrn_37_2


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
