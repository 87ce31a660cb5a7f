"""The loss on labels: cross-entropy, and a Dice of the whole batch beside it for structures that are small."""

import math

import pytest
import torch
from torch import nn

from natural_image_ext.methods.segmentation import FRAMEWORKS, build_seg_method, seg_recipe
from natural_image_ext.methods.segmentation.step import labelled_loss
from natural_image_ext.networks import LayeredHead
from natural_image_ext.networks.segmentation import SegmentationNetwork


def test_dice_beside_the_cross_entropy_has_its_golden_value():
    labels = torch.tensor([[[1, 1], [0, 255]]])
    found = labelled_loss(torch.zeros(1, 2, 2, 2), labels, dice_weight=2.0)
    dice = 1 - 2 * (0.5 + 0.5) / (3 * 0.5 + 2)  # 3 pixels with a label, 2 of them in the structure
    assert float(found) == pytest.approx(math.log(2) + 2 * dice, abs=1e-5)
    assert float(labelled_loss(torch.zeros(1, 2, 2, 2), labels)) == pytest.approx(math.log(2), abs=1e-6)


def test_image_without_a_structure_costs_nothing_if_none_is_found_in_it():
    labels = torch.zeros(2, 4, 4, dtype=torch.long)
    labels[0, :2] = 1
    sure = torch.stack([30.0 * (labels == 0), 30.0 * (labels == 1)], dim=1)
    assert float(labelled_loss(sure, labels, dice_weight=5.0)) < 1e-4


def test_pixels_without_a_label_do_not_count():
    labels = torch.randint(0, 3, (2, 6, 6), generator=torch.Generator().manual_seed(0))
    labels[:, 4:] = 255
    logits = torch.randn(2, 3, 6, 6, generator=torch.Generator().manual_seed(1))
    changed = logits.clone()
    changed[:, :, 4:] += torch.tensor([3.0, -3.0, 1.0])[:, None, None]
    assert torch.allclose(labelled_loss(logits, labels, 1.0), labelled_loss(changed, labels, 1.0))


def test_nothing_labelled_costs_no_cross_entropy_and_is_finite():
    nothing = torch.full((1, 4, 4), 255)
    assert labelled_loss(torch.randn(1, 2, 4, 4), nothing, dice_weight=1.0).isfinite()


def small():
    torch.manual_seed(0)
    return SegmentationNetwork(nn.Conv2d(3, 4, 1), nn.Identity(), LayeredHead(nn.Conv2d(4, 3, 1)), channels=4)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_every_framework_takes_the_weight(name):
    images = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(2))
    batch = {"image": images, "label": images.argmax(1), "weak": images, "strong": images}
    options = {"num_classes": 3, "steps_per_epoch": 1, "total_steps": 1, "second": small}
    losses = []
    for weight in (0.0, 1.0, 2.0):
        torch.manual_seed(3)
        method = build_seg_method(seg_recipe(name, "voc", "plain"), small(), dice_weight=weight, **options)
        losses.append(float(method(batch)["labelled"].detach()))
    assert losses[1] - losses[0] > 0.1 and losses[2] - losses[1] == pytest.approx(losses[1] - losses[0], rel=1e-4)
