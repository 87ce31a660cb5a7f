"""Heads beside a network: any network keeps its weights and its answer."""

import pytest
import torch
from methods.stages import small_network
from monai.networks.nets import BasicUNet, SegResNet, UNet
from torch import nn

from medssl.core.errors import ConfigError
from medssl.methods.parts import LogitsCopies, SideHeads, dropped_features, num_classes_of, with_features

NETWORKS = {
    "the thesis' UNet": small_network,
    "UNet with residual units": lambda: UNet(3, 1, 2, (4, 8), (2,), num_res_units=1),
    "UNet that ends coarsely": lambda: UNet(3, 1, 2, (4, 8), (2,), num_res_units=0),
    "SegResNet": lambda: SegResNet(3, 8, 1, 2, blocks_down=(1, 1), blocks_up=(1,)),
    "BasicUNet": lambda: BasicUNet(3, 1, 2, features=(4, 4, 4, 4, 4, 4)),
    "UNet of pictures": lambda: UNet(2, 1, 2, (4, 8), (2,), num_res_units=1),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_heads_answer_at_the_size_of_the_image_for_any_network(name):
    torch.manual_seed(0)
    network = NETWORKS[name]().eval()
    names, axes = set(network.state_dict()), 2 if "pictures" in name else 3
    image = torch.rand(2, 1, *[32] * axes)
    heads = SideHeads(network, {"a": 1, "b": 3})
    logits, features = with_features(network, image)
    sides = heads(features, image.shape[2:])
    assert (sides["a"].shape[1], sides["b"].shape[1]) == (1, 3)
    assert sides["a"].shape[2:] == sides["b"].shape[2:] == image.shape[2:]
    assert torch.equal(logits, network(image)) and set(network.state_dict()) == names
    assert num_classes_of(network) == 2


@pytest.mark.parametrize("name", ["the thesis' UNet", "UNet that ends coarsely", "SegResNet"])
def test_copies_of_the_last_layer_begin_with_its_answer(name):
    torch.manual_seed(0)
    network = NETWORKS[name]().eval()
    logits, features = with_features(network, torch.rand(2, 1, 16, 16, 16))
    copies = LogitsCopies(network, ("c",))
    assert torch.equal(copies(features, logits.shape[2:])["c"], logits)


def test_heads_give_the_network_a_gradient():
    network = small_network()
    logits, features = with_features(network, torch.rand(2, 1, 16, 16, 8))
    SideHeads(network, {"a": 1})(features, logits.shape[2:])["a"].sum().backward()
    assert network.encoder.state_dict() and any(
        p.grad is not None and p.grad.any() for p in network.encoder.parameters()
    )
    assert network.classifier.weight.grad is None


def test_dropped_features_change_the_answer_inside_of_the_block_alone():
    torch.manual_seed(0)
    network, image = small_network().eval(), torch.rand(2, 1, 16, 16, 8)
    before = network(image)
    with dropped_features(network, 0.5):
        inside = network(image)
    assert not torch.equal(inside, before) and torch.equal(network(image), before)


def test_a_network_without_convolutions_is_refused_by_name():
    with pytest.raises(ConfigError, match="Linear: has no convolution"):
        SideHeads(nn.Linear(2, 2), {"a": 1})
