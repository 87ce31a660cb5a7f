"""A small network and a small batch of scenes of four classes, for every framework."""

import pytest
import torch
from torch import nn

from natural_image_ext.methods.segmentation import Taught, build_seg_method, seg_recipe
from natural_image_ext.networks import LayeredHead, NPSegHead, PlainHead
from natural_image_ext.networks.segmentation import SegmentationNetwork

CLASSES = 4


class ConvHead(PlainHead, nn.Conv2d):
    """One convolution as a head."""


def _network(head="plain", seed=0):
    torch.manual_seed(seed)
    body = nn.Conv2d(3, 8, 3, stride=2, padding=1)
    heads = {
        "plain": lambda: ConvHead(8, CLASSES, 1),
        "dropout": lambda: LayeredHead(nn.Dropout2d(0.3), nn.Conv2d(8, CLASSES, 1)),
        "np": lambda: NPSegHead(8, CLASSES, hidden=4, width=8, bank_size=64, samples=3),
    }
    return SegmentationNetwork(nn.Sequential(body, nn.ReLU()), nn.Identity(), heads[head](), channels=8)


def _built(name, head="plain", **changes):
    options = {"num_classes": CLASSES, "steps_per_epoch": 2, "total_steps": 10, **changes}
    recipe = seg_recipe(name, "voc", head)
    return build_seg_method(recipe, _network(head), second=lambda: _network(head, seed=9), **options)


def _taught_of(probs):
    return Taught(torch.zeros(len(probs), 3, *probs.shape[2:]), probs, probs.argmax(1))


@pytest.fixture
def network():
    """network(head, seed): convolutions alone, maps of half the image's size."""
    return _network


@pytest.fixture
def built():
    """built(framework, head, **options of build_seg_method): a framework on that network."""
    return _built


@pytest.fixture
def taught_of():
    """taught_of(probs): what such a teacher says about black images."""
    return _taught_of


@pytest.fixture
def batch():
    torch.manual_seed(1)
    colours = torch.randn(CLASSES, 3)

    def scene(number):
        label = torch.randint(0, CLASSES, (number, 2, 2)).repeat_interleave(6, 1).repeat_interleave(6, 2)
        return colours[label].movedim(-1, 1) + 0.1 * torch.randn(number, 3, 12, 12), label

    image, label = scene(3)
    label[0, :2] = 255
    hidden, _ = scene(4)
    return {"image": image, "label": label, "weak": hidden, "strong": hidden + 0.2 * torch.randn_like(hidden)}
