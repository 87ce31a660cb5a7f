"""Self-training: the teacher learns from labelled patches only and labels with its own probabilities."""

import torch

from medssl.losses import DiceCE
from medssl.methods import TeacherLearning, UNetTeacher


def batch():
    torch.manual_seed(0)
    label = torch.randint(0, 2, (3, 1, 8, 8, 4), dtype=torch.uint8)
    return {"image": torch.randn(3, 1, 8, 8, 4), "label": label, "is_labelled": torch.tensor([True, False, True])}


def test_teacher_learns_from_labelled_patches_alone():
    torch.manual_seed(1)
    method, first = TeacherLearning(UNetTeacher(1, 2, (4, 8), dropout=0.0), DiceCE()), batch()
    second = batch()
    second["image"][1] += 1
    second["label"][1] = 1 - second["label"][1]
    assert torch.equal(method(first)["loss"], method(second)["loss"])
    second["image"][0] += 1
    assert not torch.equal(method(first)["loss"], method(second)["loss"])


def test_pseudo_labels_are_the_teachers_probabilities_without_dropout():
    teacher, image = UNetTeacher(1, 3, (4, 8), dropout=0.5).eval(), torch.randn(1, 1, 8, 8, 4)
    draws = teacher.pseudo_label_samples(image, 4)
    assert draws.shape == (4, 1, 3, 8, 8, 4)
    expected = torch.softmax(teacher(image), dim=1)
    assert all(torch.allclose(draw, expected, atol=1e-6) for draw in draws)
