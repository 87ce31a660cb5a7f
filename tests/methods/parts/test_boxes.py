"""Boxes: their shares and places in 2-D and 3-D, the draws of old runs, and what is pasted by them."""

import math

import pytest
import torch

from medssl.methods.parts import boxes_of_sides, pasted, pasted_alike, random_boxes

CPU = torch.device("cpu")


def random_boxes_of_old_runs(number, size, least, most, boxes):
    """As the 2-D methods drew them before there were boxes of any number of axes."""
    height, width = size
    masks = torch.zeros(number, height, width, dtype=torch.bool)
    for mask in masks:
        area = (least + (most - least) * torch.rand(()).item()) * height * width / boxes
        for _ in range(boxes):
            high = max(1, round(height * (0.5 + 0.5 * torch.rand(()).item()) / math.sqrt(boxes)))
            wide = min(width, math.ceil(area / high))
            top = int(torch.randint(0, height - high + 1, ()))
            left = int(torch.randint(0, width - wide + 1, ()))
            mask[top : top + high, left : left + wide] = True
    return masks


def bounding_box(mask):
    places = mask.nonzero()
    return places.amin(0), places.amax(0) - places.amin(0) + 1


@pytest.mark.parametrize("boxes", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("size", [(30, 40), (17, 5), (480, 480), (1, 3)])
def test_boxes_in_2d_are_drawn_as_in_old_runs(size, boxes):
    torch.manual_seed(4)
    expected = random_boxes_of_old_runs(20, size, 0.25, 0.5, boxes)
    state = torch.random.get_rng_state()
    torch.manual_seed(4)
    assert torch.equal(random_boxes(20, size, 0.25, 0.5, CPU, boxes), expected)
    assert torch.equal(torch.random.get_rng_state(), state), "as many draws as before"


@pytest.mark.parametrize("size", [(60, 80), (40, 32, 24)])
def test_one_box_without_holes_has_its_share_of_the_volume(size):
    torch.manual_seed(0)
    masks = random_boxes(150, size, 0.25, 0.5, CPU)
    shares = masks.float().flatten(1).mean(1)
    assert float(shares.min()) > 0.24 and float(shares.max()) < 0.55 and float(shares.std()) > 0.05
    for mask in masks[:20]:
        _, sides = bounding_box(mask)
        assert int(mask.sum()) == int(sides.prod())


def test_three_boxes_in_3d_share_the_volume():
    torch.manual_seed(0)
    masks = random_boxes(100, (40, 32, 24), 0.25, 0.5, CPU, boxes=3)
    shares = masks.float().flatten(1).mean(1)
    assert float(shares.max()) < 0.55 and 0.15 < float(shares.mean()) < 0.38
    whole = torch.stack([bounding_box(mask)[1].prod() for mask in masks])
    assert float((masks.flatten(1).sum(1) < whole).float().mean()) > 0.9, "more than one box"


@pytest.mark.parametrize("size", [(12, 9), (12, 9, 6), (7, 5, 1)])
def test_boxes_of_a_share_of_every_side_lie_anywhere(size):
    torch.manual_seed(0)
    masks = boxes_of_sides(300, size, 2 / 3, CPU)
    sides = torch.tensor([max(1, round(2 * side / 3)) for side in size])
    starts = []
    for mask in masks:
        start, extent = bounding_box(mask)
        assert torch.equal(extent, sides) and int(mask.sum()) == int(sides.prod())
        starts.append(start)
    lowest, highest = torch.stack(starts).amin(0), torch.stack(starts).amax(0)
    assert lowest.tolist() == [0] * len(size)
    assert torch.equal(highest, torch.tensor(size) - sides), "also at the far border"


def test_centred_box_lies_in_the_middle_and_draws_nothing():
    state = torch.random.get_rng_state()
    masks = boxes_of_sides(2, (9, 6, 3), 1 / 3, CPU, centred=True)
    assert torch.equal(torch.random.get_rng_state(), state)
    expected = torch.zeros(2, 9, 6, 3, dtype=torch.bool)
    expected[:, 3:6, 2:4, 1:2] = True
    assert torch.equal(masks, expected)


@pytest.mark.parametrize("share", [0.0, 1.5, -1.0])
def test_box_of_no_or_more_than_the_whole_side_is_refused(share):
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        boxes_of_sides(1, (4, 4), share, CPU)


@pytest.mark.parametrize("size", [(6, 5), (6, 5, 4)])
def test_image_probabilities_and_label_are_pasted_alike(size):
    torch.manual_seed(0)
    masks = random_boxes(3, size, 0.25, 0.5, CPU)
    own = [torch.randn(3, 2, *size), torch.rand(3, 4, *size), torch.randint(0, 4, (3, *size))]
    other = [torch.randn(3, 2, *size), torch.rand(3, 4, *size), torch.randint(0, 4, (3, *size))]
    for found, mine, theirs in zip(pasted_alike(own, other, masks), own, other, strict=True):
        assert found.dtype == mine.dtype
        channels = found.movedim(1, -1) if found.ndim > masks.ndim else found
        for place in torch.cartesian_prod(torch.arange(3), *map(torch.arange, size)).tolist():
            source = theirs if masks[tuple(place)] else mine
            source = source.movedim(1, -1) if source.ndim > masks.ndim else source
            assert torch.equal(channels[tuple(place)], source[tuple(place)])


def test_pasted_keeps_the_gradient_of_both():
    own, other = torch.ones(1, 1, 2, 2, requires_grad=True), torch.ones(1, 1, 2, 2, requires_grad=True)
    masks = torch.tensor([[[True, False], [False, False]]])
    pasted(own, other, masks).sum().backward()
    assert (float(own.grad.sum()), float(other.grad.sum())) == (3.0, 1.0)
