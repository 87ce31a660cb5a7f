"""Jitter is what MONAI's two transforms do with the same numbers."""

import pytest
import torch
from monai import transforms as mt

from medssl.data.jitter import RandJitterd


@pytest.fixture
def image() -> torch.Tensor:
    return torch.randn(1, 9, 8, 7, generator=torch.Generator().manual_seed(0))


def test_equal_to_monai(image):
    jitter = RandJitterd("image", 0.4).set_random_state(3)
    found = jitter({"image": image})["image"]
    stretched = mt.ScaleIntensityFixedMean(jitter.factor - 1, preserve_range=False)(image)
    expected = mt.ShiftIntensity(jitter.offset)(stretched)
    torch.testing.assert_close(found, torch.as_tensor(expected), atol=1e-5, rtol=0)


def test_numbers_come_from_the_seed_and_stay_in_their_range(image):
    jitter = RandJitterd("image", 0.4)
    drawn = set()
    for seed in range(200):
        jitter.set_random_state(seed)
        jitter.randomize()
        assert 0.6 <= jitter.factor <= 1.4 and -0.2 <= jitter.offset <= 0.2
        drawn.add((jitter.factor, jitter.offset))
    assert len(drawn) == 200
    first, again = (jitter.set_random_state(1)({"image": image})["image"] for _ in range(2))
    assert torch.equal(first, again)


def test_image_itself_is_left_alone(image):
    before = image.clone()
    RandJitterd("image", 0.4).set_random_state(0)({"image": image})
    assert torch.equal(image, before)
