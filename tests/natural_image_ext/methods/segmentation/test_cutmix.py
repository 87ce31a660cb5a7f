"""CutMix: what moves with its boxes, and who gets a labelled one."""

import torch

from natural_image_ext.methods.segmentation import AdaptiveCutMix, CutMix, Taught


def test_cutmix_moves_images_and_labels_together():
    torch.manual_seed(0)
    number = torch.arange(4.0)[:, None, None]
    probs = torch.stack([number.expand(4, 6, 6), -number.expand(4, 6, 6)], 1)
    taught = Taught(number[:, None].expand(4, 3, 6, 6), probs, number.long().expand(4, 6, 6))
    mixed = CutMix()(taught, {})
    assert torch.equal(mixed.images[:, 0], mixed.labels.float()) and torch.equal(mixed.probs[:, 0], mixed.images[:, 0])
    for place in range(4):
        assert set(mixed.labels[place].unique().tolist()) == {place, (place - 1) % 4}


def test_adaptive_cutmix_pastes_labelled_boxes_into_unsure_images_only():
    torch.manual_seed(0)
    number = 200
    sure = torch.tensor([[1.0, 0.0]]).repeat(number // 2, 1)
    unsure = torch.tensor([[0.5, 0.5]]).repeat(number // 2, 1)
    probs = torch.cat([sure, unsure])[:, :, None, None].expand(-1, -1, 8, 8)
    taught = Taught(torch.zeros(number, 3, 8, 8), probs, torch.zeros(number, 8, 8, dtype=torch.long))
    label = torch.ones(2, 8, 8, dtype=torch.long)
    label[:, 0] = 255
    mixer = AdaptiveCutMix(0.25, 0.5)
    mixed = mixer(taught, {"image": torch.ones(2, 3, 8, 8), "label": label})
    assert not (mixed.labels == 255).any()
    given = (mixed.labels == 1).flatten(1).any(1)
    assert torch.equal(mixed.labels == 1, mixed.images[:, 0] == 1)
    assert torch.equal(mixed.probs[:, 1][mixed.labels == 1], torch.ones_like(mixed.probs[:, 1][mixed.labels == 1]))
    # a sure image may only have part of a box of the unsure one before it
    assert int(given[1 : number // 2].sum()) == 0 and 0.3 < float(given[number // 2 :].float().mean()) <= 0.9
