"""Mean Teacher, PS-MT, U2PL, AugSeg and CPS on a small network: that all learn, and what they have in common."""

import pytest
import torch
from torch.nn import functional as F

from natural_image_ext.methods.segmentation import FRAMEWORKS, AugSeg, Learned, MeanTeacher

CLASSES = 4


@pytest.mark.parametrize("head", ["plain", "dropout", "np"])
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_every_framework_learns_with_every_head(batch, name, head, built):
    method = built(name, head, ema_decay=0.5).train()
    optimizer = torch.optim.Adam([p for p in method.parameters() if p.requires_grad], 0.02)
    losses, kls = [], []
    for _ in range(25):
        torch.manual_seed(len(losses))
        found = method(batch)
        optimizer.zero_grad()
        found["loss"].backward()
        optimizer.step()
        method.after_step()
        losses.append(float(found["labelled"].detach()))
        kls.append(float(found["kl"].detach()))
    assert losses[-1] < 0.8 * losses[0], losses
    assert all(p.grad is None for p in method.average.parameters())
    learning = [p for p in method.parameters() if p.requires_grad]
    assert all(p.grad is not None and p.grad.isfinite().all() for p in learning)
    assert (max(kls) > 0) == (head == "np")


def learned_of(logits):
    return Learned(torch.zeros(1), torch.zeros(1), logits, torch.zeros(()))


def test_mean_teacher_is_the_squared_error_of_probabilities(network, taught_of):
    torch.manual_seed(0)
    logits, probs = torch.randn(2, CLASSES, 3, 3), torch.randn(2, CLASSES, 3, 3).softmax(1)
    found = MeanTeacher(network()).unlabelled_loss(learned_of(logits), taught_of(probs), {})
    assert torch.allclose(found, (logits.softmax(1) - probs).square().mean())


def test_augseg_learns_confident_pixels_and_counts_all(network, taught_of):
    torch.manual_seed(0)
    logits, probs = torch.randn(2, CLASSES, 5, 5), (3 * torch.randn(2, CLASSES, 5, 5)).softmax(1)
    found = AugSeg(network(), confidence=0.7).unlabelled_loss(learned_of(logits), taught_of(probs), {})
    total, log_probs = 0.0, logits.log_softmax(1)
    for image in range(2):
        for row in range(5):
            for column in range(5):
                pixel = probs[image, :, row, column]
                if pixel.max() >= 0.7:
                    total -= float(log_probs[image, pixel.argmax(), row, column])
    assert float(found) == pytest.approx(total / 50, rel=1e-5) and total > 0


def test_teacher_is_an_average_without_gradient_and_without_dropout(batch, network):
    method = MeanTeacher(network("dropout"), ema_decay=0.9).train()
    first, second = (method.teach(batch).probs for _ in range(2))
    assert torch.equal(first, second) and not first.requires_grad and method.average.training
    with torch.no_grad():
        method.network.head[1].bias += 1.0
    method.after_step()
    method.network.head[1].bias.data += 1.0
    method.after_step()
    start = method.network.head[1].bias.data - 2
    assert torch.allclose(method.averaged.head[1].bias, start + 1 + 0.1, atol=1e-6)


def test_warm_up_learns_from_labels_alone(batch, network):
    method = MeanTeacher(network(), unlabelled_weight=5.0, warm_up=1)
    first = method(batch)
    assert torch.allclose(first["loss"], first["labelled"])
    method.after_step()
    then = method(batch)
    assert torch.allclose(then["loss"], then["labelled"] + 5 * then["unlabelled"])


def test_ignored_pixels_have_no_part_in_the_loss(batch, network):
    method = MeanTeacher(network(), unlabelled_weight=0.0)
    before = method(batch)["loss"]
    logits = method.network(batch["image"])
    counted = batch["label"] != 255
    each = F.cross_entropy(logits, batch["label"].clamp_max(CLASSES - 1), reduction="none")
    assert torch.allclose(before, each[counted].mean(), atol=1e-6)


@pytest.mark.parametrize("name", [name for name in FRAMEWORKS if name != "supervised"])
def test_padding_has_no_part_in_what_is_learned_from_unlabelled_images(batch, built, name):
    def learned(moved_by, valid):
        method = built(name)
        method.mixer = (lambda taught, batch: taught) if name == "cps" else None
        method.confidence = method.radius = 0.0  # every pixel is learned (AugSeg, PS-MT) as it is (PS-MT)
        views = {view: batch[view].clone() for view in ("weak", "strong")}
        for images in views.values():
            images[:, :, 8:] += moved_by  # further from the seam than a convolution reaches
        torch.manual_seed(6)
        return float(method({**batch, **views, **valid})["unlabelled"].detach())

    padded = {"valid": (torch.arange(12) < 6)[:, None].expand(4, 12, 12)}
    assert learned(0.0, padded) == pytest.approx(learned(9.0, padded), rel=1e-5)
    assert learned(0.0, {}) != pytest.approx(learned(9.0, {}), rel=1e-3), "these pixels would count"


def test_labelled_batch_without_any_label_costs_nothing(batch, network):
    batch["label"] = torch.full_like(batch["label"], 255)
    found = MeanTeacher(network())(batch)
    assert float(found["labelled"].detach()) == 0 and found["loss"].isfinite()


@pytest.mark.parametrize("head", ["plain", "np"])
def test_supervised_learns_the_same_whatever_is_unlabelled(batch, head, built):
    losses = []
    for change in (0.0, 5.0):
        method = built("supervised", head)
        torch.manual_seed(0)
        losses.append(method({**batch, "weak": batch["weak"] + change, "strong": batch["strong"] - change})["loss"])
    assert torch.equal(losses[0], losses[1])


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_average_is_evaluated_and_only_networks_without_gradient_teach(built, name):
    method = built(name)
    assert method.evaluated is method.averaged
    assert len(method.teachers) == (0 if name in ("supervised", "cps") else 1)
    assert not any(parameter.requires_grad for teacher in method.teachers for parameter in teacher.parameters())
