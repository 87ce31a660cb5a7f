"""NP-SemiSeg's head in place of the classifier of networks that are not ours, in 2-D and 3-D."""

import pytest
import segmentation_models_pytorch as smp
import torch
from monai.networks.nets import BasicUNet
from torch import nn
from torch.nn import functional as F

from natural_image_ext.losses import gaussian_kl
from natural_image_ext.networks import NPSegHead


def unet_of_smp():
    return smp.Unet("resnet18", encoder_weights=None, classes=4), "segmentation_head", torch.randn(2, 3, 32, 64)


def unet_of_monai():
    network = BasicUNet(spatial_dims=3, in_channels=1, out_channels=4, features=(8, 8, 8, 8, 8, 8))
    return network, "final_conv", torch.randn(2, 1, 32, 32, 48)


@pytest.mark.parametrize("build", [unet_of_smp, unet_of_monai])
def test_head_replaces_the_classifier_and_the_whole_network_learns(build):
    torch.manual_seed(0)
    network, classifier, images = build()
    setattr(network, classifier, nn.Identity())
    features = network(images)
    head = NPSegHead(features.shape[1], 4, features.ndim - 2, hidden=4, width=8, bank_size=64, samples=3)
    setattr(network, classifier, head)
    labels = torch.randint(0, 4, images.shape[:1] + images.shape[2:])
    found = head.condition(features[:1], labels[:1], features, labels)
    kl = gaussian_kl(found.mean, found.std.square(), found.context_mean, found.context_std.square())
    (F.cross_entropy(found.mean_logits, labels) + kl.mean()).backward()
    assert all(parameter.grad is not None for parameter in network.parameters())
    assert float(next(network.parameters()).grad.abs().sum()) > 0, "the first layer of the encoder learns"
    with torch.no_grad():
        predicted = network.eval()(images)
    assert predicted.logits.shape == (3, 2, 4, *images.shape[2:])
    assert torch.allclose(predicted.probs.sum(1), torch.ones(()), atol=1e-5)
