"""Cross-entropy is cross-entropy, Dice the soft Dice of the thesis as a mean; soft labels generalise hard ones."""

import numpy as np
import pytest
import torch

from medssl.losses import DiceCE, soft_dice_loss
from medssl.losses.segmentation import one_hot

RELEASED_DICE_SUM = 1.6666594445  # thesis_vs_released_code.md, section 6: summed over a batch of 2


def example(classes: int = 3, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    """Random logits (2, classes, 3, 4, 5) and class ids (2, 1, 3, 4, 5)."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, classes, 3, 4, 5, generator=generator, dtype=dtype)
    return logits, torch.randint(classes, (2, 1, 3, 4, 5), generator=generator).to(torch.uint8)


def softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def dice_by_loop(probs: np.ndarray, target: np.ndarray, smooth: float = 1e-5) -> float:
    values = []
    for sample in range(probs.shape[0]):
        for index in range(1, probs.shape[1]):
            p, t = probs[sample, index].ravel(), target[sample, index].ravel()
            values.append(1 - (2 * (p * t).sum() + smooth) / (p.sum() + t.sum() + smooth))
    return float(np.mean(values))


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_cross_entropy_is_the_mean_negative_log_probability_of_the_true_class(classes):
    logits, label = example(classes)
    probs = softmax(logits.numpy())
    picked = np.take_along_axis(probs, label.numpy().astype(int), axis=1)
    assert DiceCE()(logits, label)["ce"].item() == pytest.approx(-np.log(picked).mean(), abs=1e-12)


def test_perfect_logits_cost_nothing():
    """The released code reshapes without permuting and gives 3.0199 here."""
    _, label = example(3)
    found = DiceCE()(20.0 * one_hot(label, 3).double(), label)
    assert found["ce"].item() == pytest.approx(0, abs=1e-7)
    assert found["dice"].item() == pytest.approx(0, abs=1e-7)
    assert found["loss"].item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-6)])
def test_dice_golden_of_zero_logits(dtype, tolerance):
    label = torch.zeros(2, 1, 1, 2, 2, dtype=torch.uint8)
    label[0, 0, 0, 0, 0] = 1
    found = DiceCE()(torch.zeros(2, 2, 1, 2, 2, dtype=dtype), label)["dice"]
    assert found.item() == pytest.approx(RELEASED_DICE_SUM / 2, abs=tolerance)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_dice_agrees_with_a_loop(classes):
    logits, label = example(classes)
    target = one_hot(label, classes)
    expected = dice_by_loop(softmax(logits.numpy()), target.numpy())
    assert soft_dice_loss(torch.softmax(logits, 1), target).item() == pytest.approx(expected, abs=1e-12)


def test_dice_leaves_the_background_out():
    logits, label = example(3)
    probs, target = torch.softmax(logits, 1), one_hot(label, 3)
    assert torch.equal(
        soft_dice_loss(probs, target), soft_dice_loss(torch.cat([probs[:, :1] * 0, probs[:, 1:]], 1), target)
    )


@pytest.mark.parametrize("shape", [(2, 2, 6, 5), (2, 2, 3, 4, 5)], ids=["2-D", "3-D"])
def test_slices_and_volumes_are_both_taken(shape):
    logits, label = torch.randn(shape), torch.randint(2, (shape[0], 1, *shape[2:]))
    assert DiceCE()(logits, label)["loss"].ndim == 0


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.uint8, torch.int64])
def test_one_hot_labels_cost_what_class_ids_cost(dtype):
    logits, label = example(3)
    hard, soft = DiceCE()(logits, label), DiceCE()(logits, one_hot(label, 3).to(dtype))
    for name in hard:
        assert soft[name].item() == pytest.approx(hard[name].item(), abs=1e-12)


def test_soft_labels_are_not_hardened():
    logits, _ = example(3)
    target = torch.softmax(example(3)[0].flip(0), 1)
    found = DiceCE()(logits, target)
    probs = softmax(logits.numpy())
    assert found["ce"].item() == pytest.approx(-(target.numpy() * np.log(probs)).sum(1).mean(), abs=1e-12)
    assert found["dice"].item() == pytest.approx(dice_by_loop(probs, target.numpy()), abs=1e-12)


def test_weights_are_those_of_the_thesis_unless_given():
    logits, label = example(2)
    found = DiceCE()(logits, label)
    assert found["loss"].item() == pytest.approx(found["ce"].item() + 2 * found["dice"].item())
    other = DiceCE(ce_weight=0.5, dice_weight=0.0)(logits, label)
    assert other["loss"].item() == pytest.approx(0.5 * found["ce"].item())


@pytest.mark.parametrize("soft", [False, True])
def test_gradients_are_right(soft):
    logits, label = example(3)
    small, target = logits[..., :2, :2].clone().requires_grad_(), label[..., :2, :2]
    target = one_hot(target, 3).double() * 0.7 + 0.1 if soft else target
    assert torch.autograd.gradcheck(lambda x: DiceCE()(x, target)["loss"], (small,))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_dice_of_half_precision_is_summed_in_float32(dtype):
    probs = torch.full((1, 2, 64, 64, 32), 0.5, dtype=dtype)  # sums to 65536, beyond float16
    target = torch.ones_like(probs)
    assert soft_dice_loss(probs, target).item() == pytest.approx(1 / 3, abs=1e-4)


def test_one_hot_puts_classes_first():
    label = torch.tensor([[[[0, 2], [1, 0]]]])
    assert one_hot(label, 3).tolist() == [[[[1, 0], [0, 1]], [[0, 0], [1, 0]], [[0, 1], [0, 0]]]]


def test_voxel_weights_leave_voxels_out():
    torch.manual_seed(0)
    logits, target = torch.randn(2, 3, 4, 5), torch.randint(0, 3, (2, 1, 4, 5))
    weight = torch.zeros(2, 4, 5)
    weight[:, :2] = 1
    found = DiceCE()(logits, target, weight)
    expected = DiceCE()(logits[:, :, :2], target[:, :, :2])
    assert found["ce"].item() == pytest.approx(expected["ce"].item(), rel=1e-6)
    assert found["dice"].item() == pytest.approx(expected["dice"].item(), rel=1e-5)


def test_equal_voxel_weights_change_nothing():
    torch.manual_seed(0)
    logits, target = torch.randn(2, 3, 4, 5), torch.randint(0, 3, (2, 1, 4, 5))
    found, expected = DiceCE()(logits, target, torch.full((2, 4, 5), 0.3)), DiceCE()(logits, target)
    assert found["loss"].item() == pytest.approx(expected["loss"].item(), rel=1e-4)
