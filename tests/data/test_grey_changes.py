"""Changes of grey: values by hand, and the numbers of torchvision where it is installed."""

import pytest
import torch

from medssl.data import grey_changes


def image_of(*rows):
    return torch.tensor([rows] * 3, dtype=torch.uint8)


def test_brightness_is_a_factor_and_ends_at_white():
    assert grey_changes.brightened(image_of([10, 200]), 1.5).tolist() == [[[15, 255]]] * 3


def test_contrast_is_the_distance_from_the_mean():
    assert grey_changes.contrasted(image_of([100, 200]), 0.5).tolist() == [[[124, 174]]] * 3  # the mean is 149 or 150


def test_stretching_reaches_black_and_white_and_leaves_a_flat_channel():
    image = image_of([50, 75, 100])
    image[2] = 7
    wide = grey_changes.stretched(image)
    assert wide[0, 0, :2].tolist() == [0, 127] and wide[0, 0, 2] >= 254, "white but for rounding"
    assert torch.equal(wide[1], wide[0]) and wide[2].tolist() == [[7, 7, 7]]


def test_equalising_gives_greys_their_share_and_leaves_few_pixels_alone():
    few = image_of([1, 2, 3])
    assert torch.equal(grey_changes.equalised(few), few)
    many = torch.arange(10, 14).repeat_interleave(400).view(1, 40, 40).expand(3, -1, -1).to(torch.uint8)
    equal = grey_changes.equalised(many)  # steps of (1600 - 400) // 255 = 4 pixels a grey
    assert [int(equal[0][many[0] == grey].unique()) for grey in range(10, 14)] == [0, 100, 200, 255]


def test_blur_keeps_the_mean_and_takes_the_edge():
    image = torch.zeros(3, 20, 20, dtype=torch.uint8)
    image[:, :, 10:] = 200
    soft = grey_changes.blurred(image, 2.0)
    assert 0 < soft[0, 5, 9] < 100 < soft[0, 5, 10] < 200
    assert soft.float().mean() == pytest.approx(100, abs=0.5)


@pytest.mark.parametrize(("bits", "expected"), [(8, [0, 7, 130, 255]), (4, [0, 0, 128, 240]), (1, [0, 0, 128, 128])])
def test_posterising_keeps_the_first_bits(bits, expected):
    assert grey_changes.posterised(image_of([0, 7, 130, 255]), bits).tolist() == [[expected]] * 3


def test_values_are_those_of_torchvision():
    functional = pytest.importorskip("torchvision.transforms.v2").functional
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        image = torch.randint(0, 256, (3, 33, 40), generator=generator, dtype=torch.uint8)
        strength = 0.5 + float(torch.rand((), generator=generator))
        assert torch.equal(grey_changes.brightened(image, strength), functional.adjust_brightness(image, strength))
        assert torch.equal(grey_changes.contrasted(image, strength), functional.adjust_contrast(image, strength))
        assert torch.equal(grey_changes.stretched(image // 2), functional.autocontrast(image // 2))
        assert torch.equal(grey_changes.equalised(image // 2), functional.equalize(image // 2))
        assert torch.equal(grey_changes.posterised(image, 5), functional.posterize(image, 5))
        blurred = functional.gaussian_blur(image, [5, 5], [strength, strength])
        assert torch.equal(grey_changes.blurred(image, strength), blurred)
