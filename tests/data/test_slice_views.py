"""Turns, sizes and cuts of slices: known places, and the numbers of torchvision where it is installed."""

import re
from pathlib import Path

import pytest
import torch

import medssl
from medssl.data.slice_views import NO_LABEL, RandomCrop, SliceViews, resized, turned


def slices(seed, height=40, width=34):
    generator = torch.Generator().manual_seed(seed)
    image = torch.rand(3, height, width, generator=generator) * 2 - 1
    return image, torch.randint(0, 3, (height, width), generator=generator, dtype=torch.uint8)


def test_medssl_does_not_import_torchvision_which_its_base_install_lacks():
    sources = list(Path(medssl.__file__).parent.rglob("*.py"))
    assert len(sources) > 50
    assert [path.name for path in sources if re.search(r"^\s*(import|from) torchvision", path.read_text(), re.M)] == []


def test_quarter_turn_moves_every_pixel_and_no_turn_moves_none():
    label = torch.arange(25, dtype=torch.uint8).view(1, 5, 5)
    assert torch.equal(turned(label, 90.0, NO_LABEL, "nearest"), label.rot90(1, (1, 2)))
    assert torch.equal(turned(label, 0.0, NO_LABEL, "nearest"), label)


def test_corners_that_come_from_outside_have_the_fill():
    image, label = torch.full((3, 21, 21), 0.5), torch.ones(1, 21, 21, dtype=torch.uint8)
    soft, hard = turned(image, 45.0, -1.0), turned(label, 45.0, NO_LABEL, "nearest")
    assert soft[0, 0, 0] == -1 and hard[0, 0, 0] == NO_LABEL
    assert soft[0, 10, 10] == pytest.approx(0.5, abs=1e-6) and hard[0, 10, 10] == 1


def test_smaller_slice_has_the_mean_of_what_a_pixel_covers():
    image = torch.arange(4.0).repeat_interleave(8).expand(3, 8, -1)
    assert resized(image, (8, 4))[0, 0].tolist() == pytest.approx([0.1, 1.0, 2.0, 2.9], abs=0.1)


@pytest.mark.parametrize("seed", range(5))
def test_slice_smaller_than_the_crop_lies_anywhere_in_it(seed):
    image, label = slices(seed, 6, 6)
    torch.manual_seed(seed)
    cut, inside = RandomCrop(30, 32, 10.0)(image, label)
    assert cut.shape == (3, 30, 32) and inside.shape == (30, 32)
    known = (inside != NO_LABEL).float().mean()
    assert known < 0.1
    assert torch.all(cut[:, :, 0] == -1) or torch.all(cut[:, :, -1] == -1)


def test_views_and_chance_are_those_of_torchvision():
    pytest.importorskip("torchvision")
    from torchvision import tv_tensors
    from torchvision.transforms import v2

    fill = {tv_tensors.Image: -1.0, tv_tensors.Mask: NO_LABEL}
    turn = v2.RandomApply([v2.RandomRotation(10.0, v2.InterpolationMode.BILINEAR, fill=fill)], p=0.5)
    cut = v2.RandomCrop([32, 36], pad_if_needed=True, fill=fill)
    theirs = v2.Compose([turn, v2.RandomVerticalFlip(), cut])
    views = SliceViews((32, 36))
    for seed in range(25):
        image, label = slices(seed)
        torch.manual_seed(seed)
        found, mask = views.cropped()(image, label)
        torch.manual_seed(seed)
        factor = 0.8 + (1.25 - 0.8) * torch.rand(()).item()
        size = [round(factor * side) for side in image.shape[1:]]
        nearest = v2.InterpolationMode.NEAREST_EXACT
        large = v2.functional.resize(tv_tensors.Image(image), size)
        expected, expected_mask = theirs(large, v2.functional.resize(tv_tensors.Mask(label), size, nearest))
        assert torch.equal(found, expected.as_subclass(torch.Tensor))
        assert torch.equal(mask, expected_mask.as_subclass(torch.Tensor))
        jitter = v2.RandomApply([v2.ColorJitter(brightness=0.5, contrast=0.5)], p=0.8)
        blur = v2.RandomApply([v2.GaussianBlur(5, (0.1, 2.0))], p=0.5)
        state = torch.get_rng_state()
        stronger = views.stronger()(found)
        torch.set_rng_state(state)
        greys = ((found + 1) * 127.5).round().clamp(0, 255).to(torch.uint8)
        assert torch.equal(stronger, v2.Compose([jitter, blur])(greys).float() / 127.5 - 1)
