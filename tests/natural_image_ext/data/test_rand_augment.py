"""Strong views as the code of semi-supervised classification has them: strengths and sides drawn evenly."""

import pytest
import torch

from natural_image_ext.data import rand_augment
from natural_image_ext.data.rand_augment import CUT_COLOUR, OPERATIONS, SquareCutout, UniformRandAugment


@pytest.fixture
def picture():
    return torch.randint(0, 256, (3, 32, 32), generator=torch.Generator().manual_seed(0)).to(torch.uint8)


@pytest.mark.parametrize("place", range(len(OPERATIONS)))
def test_every_operation_takes_all_of_its_range(picture, place):
    least, most, change = OPERATIONS[place]
    for strength in (least, (least + most) / 2, most):
        changed = change(picture, strength)
        assert changed.shape == picture.shape and changed.dtype == torch.uint8


def test_there_are_14_operations_and_they_do_what_they_are_known_for(picture):
    assert len(OPERATIONS) == 14
    ranges = [(least, most) for least, most, _ in OPERATIONS]
    assert ranges.count((-0.3, 0.3)) == 4 and ranges.count((0.05, 0.95)) == 4
    assert (-30.0, 30.0) in ranges and (4.0, 8.0) in ranges and (0.0, 256.0) in ranges
    moved_across = OPERATIONS[12][2](picture, 0.25)
    assert torch.equal(moved_across[..., 8:], picture[..., :-8]) and not moved_across[..., :8].any()
    solarise = OPERATIONS[11][2]
    assert torch.equal(solarise(picture, 256.0), picture) and torch.equal(solarise(picture, 0.0), 255 - picture)


def test_strengths_are_drawn_evenly_and_operations_with_replacement(picture, monkeypatch):
    seen = []
    noted = [(0.0, 1.0, lambda image, s, n=n: seen.append((n, s)) or image) for n in range(2)]
    monkeypatch.setattr(rand_augment, "OPERATIONS", noted)
    torch.manual_seed(0)
    augment = UniformRandAugment(3)
    for _ in range(400):
        augment(picture)
    strengths = torch.tensor([strength for _, strength in seen])
    assert len(seen) == 1200
    counts = torch.histc(strengths, bins=4, min=0, max=1)
    assert counts.min() > 240 and counts.max() < 360, "no fixed magnitude"
    triples = [tuple(n for n, _ in seen[start : start + 3]) for start in range(0, 1200, 3)]
    assert (0, 0, 0) in triples and (1, 1, 1) in triples


def test_sides_of_cutout_are_drawn_evenly_up_to_half_of_the_width():
    torch.manual_seed(0)
    white = torch.full((3, 64, 64), 255, dtype=torch.uint8)
    cut = SquareCutout()
    sides = []
    for _ in range(600):
        gone = (cut(white) != white).any(0)
        sides.append(int(gone.any(0).sum()))
    values = torch.tensor(sides).float()
    assert values.max() <= 32
    # evenly by side: half of them below 16; evenly by area it would be a quarter
    assert 0.42 < float((values < 16).float().mean()) < 0.68
    image = cut(white)
    assert {tuple(colour) for colour in image.flatten(1).T.tolist()} <= {(255, 255, 255), CUT_COLOUR}
    assert (white == 255).all(), "the picture that was given stays as it is"
