"""CutMix: what moves with its boxes, and who gets a labelled one."""

import math

import pytest
import torch

from natural_image_ext.methods.segmentation import AdaptiveCutMix, BetaCutMix, CutMix, Taught
from natural_image_ext.methods.segmentation.cutmix import beta_boxes, sureness


def test_cutmix_moves_images_and_labels_together():
    torch.manual_seed(0)
    number = torch.arange(4.0)[:, None, None]
    probs = torch.stack([number.expand(4, 6, 6), -number.expand(4, 6, 6)], 1)
    taught = Taught(number[:, None].expand(4, 3, 6, 6), probs, number.long().expand(4, 6, 6))
    mixed = CutMix()(taught, {})
    assert torch.equal(mixed.images[:, 0], mixed.labels.float()) and torch.equal(mixed.probs[:, 0], mixed.images[:, 0])
    for place in range(4):
        assert set(mixed.labels[place].unique().tolist()) == {place, (place - 1) % 4}


def test_images_are_sure_of_themselves_by_entropy_and_highest_probability():
    probs = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.25, 0.25], [1 / 3, 1 / 3, 1 / 3]])[:, :, None, None]
    entropy = -(0.5 * math.log(0.5) + 0.5 * math.log(0.25))
    expected = [1.0, (1 - entropy / math.log(3)) * 0.5, 0.0]
    assert sureness(probs.expand(-1, -1, 4, 4)).tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("beta", "mean"), [((8.0, 2.0), 0.2), ((4.0, 4.0), 0.5)])
def test_boxes_take_what_the_beta_distribution_leaves(beta, mean):
    torch.manual_seed(0)
    device = torch.device("cpu")
    shares = []
    for _ in range(300):
        masks = beta_boxes(12, (64, 64), beta, device)
        shares.append(masks.flatten(1).float().mean(1).max())  # the one that is cut off least
    assert float(torch.stack(shares).mean()) == pytest.approx(mean, abs=0.05)


def test_boxes_of_a_batch_have_one_size_and_the_shape_of_the_image():
    torch.manual_seed(3)
    masks = beta_boxes(200, (40, 80), (4.0, 4.0), torch.device("cpu"))
    heights, widths = masks.any(2).sum(1), masks.any(1).sum(1)
    assert abs(2 * int(heights.max()) - int(widths.max())) <= 2
    assert int((heights == heights.max()).sum()) > 20, "whole where they are not cut off"


def test_beta_cutmix_pastes_boxes_of_other_unlabelled_images():
    torch.manual_seed(0)
    number = torch.arange(8.0)[:, None, None]
    probs = torch.stack([number.expand(8, 16, 16), -number.expand(8, 16, 16)], 1)
    taught = Taught(number[:, None].expand(8, 3, 16, 16), probs, number.long().expand(8, 16, 16))
    labelled = {"image": torch.full((8, 3, 16, 16), 99.0), "label": torch.full((8, 16, 16), 99)}
    mixed = BetaCutMix()(taught, labelled)
    assert torch.equal(mixed.images[:, 0], mixed.labels.float()) and torch.equal(mixed.probs[:, 0], mixed.images[:, 0])
    assert not (mixed.labels == 99).any()
    others = [len(labels.unique()) for labels in mixed.labels]
    assert max(others) == 2 and sum(count == 2 for count in others) > 4


def test_adaptive_cutmix_pastes_labelled_boxes_into_unsure_images_only():
    torch.manual_seed(0)
    number = 200
    sure = torch.tensor([[1.0, 0.0]]).repeat(number // 2, 1)
    unsure = torch.tensor([[0.5, 0.5]]).repeat(number // 2, 1)
    probs = torch.cat([sure, unsure])[:, :, None, None].expand(-1, -1, 16, 16)
    taught = Taught(torch.zeros(number, 3, 16, 16), probs, torch.zeros(number, 16, 16, dtype=torch.long))
    label = torch.ones(2, 16, 16, dtype=torch.long)
    label[:, 0] = 255
    batch, mixer = {"image": torch.ones(2, 3, 16, 16), "label": label}, AdaptiveCutMix()
    boxed = mixer.with_labelled_boxes(taught, batch, torch.randperm(number))
    given = (boxed.labels == 1).flatten(1).any(1)
    assert not given[: number // 2].any(), "sure with probability 1"
    assert float(given[number // 2 :].float().mean()) > 0.9, "at the highest entropy never sure, however high p_max is"
    mixed = mixer(taught, batch)
    assert not (mixed.labels == 255).any() and (mixed.labels == 1).any()
    assert torch.equal(mixed.labels == 1, mixed.images[:, 0] == 1)
    pasted = mixed.probs[:, 1][mixed.labels == 1]
    assert torch.equal(pasted, torch.ones_like(pasted))


def test_labelled_boxes_are_seen_where_they_lie_in_the_box_of_another_image():
    torch.manual_seed(1)
    probs = torch.full((6, 2, 16, 16), 0.5)
    taught = Taught(torch.zeros(6, 3, 16, 16), probs, torch.zeros(6, 16, 16, dtype=torch.long))
    batch = {"image": torch.ones(6, 3, 16, 16), "label": torch.ones(6, 16, 16, dtype=torch.long)}

    class WholeBoxes(AdaptiveCutMix):
        def with_labelled_boxes(self, taught, batch, partners):
            return Taught(torch.ones_like(taught.images), taught.probs, torch.ones_like(taught.labels))

    torch.manual_seed(2)
    boxes = WholeBoxes()(taught, batch).labels == 1
    torch.manual_seed(2)
    torch.randperm(6)
    assert torch.equal(boxes, beta_boxes(6, (16, 16), (4.0, 4.0), torch.device("cpu")))
