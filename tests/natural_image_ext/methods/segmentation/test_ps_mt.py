"""PS-MT: who teaches when, what an assisting teacher may say, where features are moved, what counts how much."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from natural_image_ext.methods.segmentation import PSMT, Learned
from natural_image_ext.networks import PlainHead
from natural_image_ext.networks.segmentation import SegmentationNetwork

CLASSES = 5


class ConvHead(PlainHead, nn.Conv2d):
    """One convolution as a head."""


@pytest.fixture
def method():
    """Teachers that say their bias of every pixel."""
    head = ConvHead(3, CLASSES, 1)
    nn.init.zeros_(head.weight)
    return PSMT(SegmentationNetwork(nn.Identity(), nn.Identity(), head, 3), steps_per_epoch=2, assisted=2)


@pytest.fixture
def views():
    return {"weak": torch.zeros(2, 3, 4, 4), "strong": torch.ones(2, 3, 4, 4)}


def says(method, teacher, logits):
    {"latest": method.averaged, "other": method.assistant.module}[teacher].head.bias.data = torch.tensor(logits)


def opinion(method, views):
    probs = method.teach(views).probs
    assert torch.equal(probs, probs[:1, :, :1, :1].expand_as(probs))
    return probs[0, :, 0, 0]


def test_untrained_second_teacher_has_no_say_in_the_first_epoch(method, views):
    for _ in range(2):
        says(method, "latest", [3.0, 0.0, 0.0, 1.0, 2.0])
        says(method, "other", [0.0, 9.0, 8.0, 0.0, 0.0])
        assert method.teachers == (method.averaged,)
        assert torch.allclose(opinion(method, views), torch.tensor([3.0, 0.0, 0.0, 1.0, 2.0]).softmax(0))
        method.after_step()
    assert method.teachers == (method.averaged,), "the second epoch has begun, its teacher has not learned yet"
    method.after_step()
    assert method.teachers == (method.averaged, method.assistant.module), "the one updated last leads"


def test_assisting_teacher_is_heard_on_its_highest_classes_alone(method, views):
    latest, other = [3.0, 0.0, -1.0, 1.0, 2.0], [-5.0, 6.0, -2.0, -4.0, 4.0]
    # in the middle of an epoch the one updated last leads, at the first step of an epoch the one whose turn begins
    for step, mixed in ((5, [3.0, 3.0, -1.0, 1.0, 3.0]), (6, [-1.0, 6.0, -2.0, -4.0, 3.0])):
        method.assistant.n_averaged.fill_(1)
        says(method, "latest", latest)
        says(method, "other", other)
        method.step.fill_(step)
        assert torch.allclose(opinion(method, views), torch.tensor(mixed).softmax(0)), step


def test_seven_of_fewer_classes_are_all_of_them(method, views):
    method.assisted = 7
    method.assistant.n_averaged.fill_(1)
    says(method, "latest", [3.0, 0.0, -1.0, 1.0, 2.0])
    says(method, "other", [-5.0, 6.0, -2.0, -4.0, 4.0])
    assert torch.allclose(opinion(method, views), torch.tensor([-1.0, 3.0, -1.5, -1.5, 3.0]).softmax(0))


def test_weight_of_unlabelled_images_rises_over_twelve_epochs(method):
    method.unlabelled_weight = 1.5
    for step, share in ((0, math.exp(-5)), (12, math.exp(-5 / 4)), (24, 1.0), (100, 1.0)):
        method.step.fill_(step)
        assert method.weight_now() == pytest.approx(1.5 * share)
    method.ramp_up_epochs, method.warm_up = 0, 200
    assert method.weight_now() == 0
    method.warm_up = 0
    assert method.weight_now() == 1.5


def test_teachers_are_updated_in_turn_and_the_one_updated_last_is_evaluated(network):
    method = PSMT(network(), steps_per_epoch=2, ema_decay=0.0)
    evaluated, other, start = method.averaged, method.assistant.module, method.network.head.bias.data.clone()
    seen = []
    for _ in range(6):
        method.network.head.bias.data += 1.0
        method.after_step()
        seen.append([round(float((teacher.head.bias - start).mean())) for teacher in (evaluated, other)])
    # each is as old as the student was at its last update
    assert seen == [[1, 0], [2, 0], [3, 2], [4, 2], [5, 4], [6, 4]]
    assert method.averaged is evaluated, "validation and export hold this very module"
    assert (int(method.average.n_averaged), int(method.assistant.n_averaged)) == (4, 2)


@pytest.mark.parametrize("head", ["plain", "np"])
def test_features_are_moved_where_teachers_change_most(batch, head, network):
    method = PSMT(network(head), radius=0.1)
    features = method.network.features(batch["strong"]).detach()
    if head == "np":
        method.network.head.condition(features, torch.randint(0, 4, (4, 6, 6)), features, torch.zeros(4, 6, 6))
        method.after_step()
    torch.manual_seed(0)
    moved = method.perturbation(features)
    lengths = moved.flatten(1).norm(dim=1) / features.flatten(1).norm(dim=1)
    assert torch.allclose(lengths, torch.full((4,), 0.1), atol=1e-4)

    def change(by):
        with torch.no_grad():
            both = [method.averaged.eval().head(x) for x in (features, features + by)]
            if head == "np":
                both = [method.averaged.head(x, 0).mean_logits for x in (features, features + by)]
            return float(F.kl_div(both[1].log_softmax(1), both[0].softmax(1), reduction="batchmean"))

    random = torch.randn_like(features)
    random = (
        random * moved.flatten(1).norm(dim=1)[:, None, None, None] / random.flatten(1).norm(dim=1)[:, None, None, None]
    )
    assert change(moved) > 2 * change(random)


@pytest.mark.parametrize("head", ["plain", "np"])
def test_features_are_moved_in_the_same_direction_under_autocast(batch, head, network):
    method = PSMT(network(head))
    features = method.network.features(batch["strong"]).detach()
    if head == "np":
        method.network.head.condition(features, torch.randint(0, 4, (4, 6, 6)), features, torch.zeros(4, 6, 6))
        method.after_step()
    torch.manual_seed(0)
    exact = method.perturbation(features)
    torch.manual_seed(0)
    with torch.autocast("cpu", torch.bfloat16):
        found = method.perturbation(features.bfloat16())
    assert found.dtype == torch.bfloat16
    assert float(F.cosine_similarity(exact.flatten(1), found.float().flatten(1)).min()) > 0.9


def test_pixels_are_weighted_by_their_confidence(network, taught_of):
    torch.manual_seed(0)
    method = PSMT(network(), confidence=0.5, radius=0.0)
    features, probs = torch.randn(2, 8, 3, 3), (2 * torch.randn(2, 4, 6, 6)).softmax(1)
    learned = Learned(features, torch.zeros(1), torch.zeros(1), torch.zeros(()))
    found = method.unlabelled_loss(learned, taught_of(probs), {"image": torch.zeros(0, 3, 6, 6)})
    logits = F.interpolate(method.network.head(features), (6, 6), mode="bilinear", align_corners=True)
    highest, labels = probs.max(1)
    each = F.cross_entropy(logits, labels, reduction="none")
    assert torch.allclose(found, (each * highest * (highest >= 0.5)).mean())
