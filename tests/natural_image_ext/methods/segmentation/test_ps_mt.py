"""PS-MT's teachers: who teaches when, what an assisting one may say, how fast unlabelled images count."""

import math

import pytest
import torch
from torch import nn

from natural_image_ext.methods.segmentation import PSMT
from natural_image_ext.networks.segmentation import SegmentationNetwork

CLASSES = 5


@pytest.fixture
def method():
    """Teachers that say their bias of every pixel."""
    head = nn.Conv2d(3, CLASSES, 1)
    nn.init.zeros_(head.weight)
    return PSMT(SegmentationNetwork(nn.Identity(), nn.Identity(), head, 3), steps_per_epoch=2, assisted=2)


@pytest.fixture
def batch():
    return {"weak": torch.zeros(2, 3, 4, 4), "strong": torch.ones(2, 3, 4, 4)}


def says(method, teacher, logits):
    {"first": method.averaged, "second": method.assistant.module}[teacher].head.bias.data = torch.tensor(logits)


def opinion(method, batch):
    probs = method.teach(batch).probs
    assert torch.equal(probs, probs[:1, :, :1, :1].expand_as(probs))
    return probs[0, :, 0, 0]


def test_untrained_second_teacher_has_no_say_in_the_first_epoch(method, batch):
    for _ in range(2):
        says(method, "first", [3.0, 0.0, 0.0, 1.0, 2.0])
        says(method, "second", [0.0, 9.0, 8.0, 0.0, 0.0])
        assert method.teachers == (method.averaged,)
        assert torch.allclose(opinion(method, batch), torch.tensor([3.0, 0.0, 0.0, 1.0, 2.0]).softmax(0))
        method.after_step()
    assert method.teachers == (method.averaged,), "the second epoch has begun, its teacher has not learned yet"
    method.after_step()
    assert method.teachers == (method.assistant.module, method.averaged)


def test_assisting_teacher_is_heard_on_its_highest_classes_alone(method, batch):
    first, second = [3.0, 0.0, -1.0, 1.0, 2.0], [-5.0, 6.0, -2.0, -4.0, 4.0]
    for step, mixed in ((4, [3.0, 3.0, -1.0, 1.0, 3.0]), (6, [-1.0, 6.0, -2.0, -4.0, 3.0])):
        method.assistant.n_averaged.fill_(1)
        says(method, "first", first)
        says(method, "second", second)
        method.step.fill_(step)
        assert torch.allclose(opinion(method, batch), torch.tensor(mixed).softmax(0)), step


def test_seven_of_fewer_classes_are_all_of_them(method, batch):
    method.assisted = 7
    method.assistant.n_averaged.fill_(1)
    says(method, "first", [3.0, 0.0, -1.0, 1.0, 2.0])
    says(method, "second", [-5.0, 6.0, -2.0, -4.0, 4.0])
    assert torch.allclose(opinion(method, batch), torch.tensor([-1.0, 3.0, -1.5, -1.5, 3.0]).softmax(0))


def test_weight_of_unlabelled_images_rises_over_twelve_epochs(method):
    method.unlabelled_weight = 1.5
    for step, share in ((0, math.exp(-5)), (12, math.exp(-5 / 4)), (24, 1.0), (100, 1.0)):
        method.step.fill_(step)
        assert method.weight_now() == pytest.approx(1.5 * share)
    method.ramp_up_epochs, method.warm_up = 0, 200
    assert method.weight_now() == 0
    method.warm_up = 0
    assert method.weight_now() == 1.5
