"""The strong view: each change is what it is called, strengths stay in their limits, the image itself stays."""

import math

import numpy as np
import pytest
import torch
from monai import transforms as mt
from scipy import ndimage

from medssl.data.strong_view import RandStrongView, StrongChanges, blurred, raised

NONE = {"contrast": 0, "brightness": 0, "gamma": 0, "blur_probability": 0, "noise": 0}


@pytest.fixture
def image() -> torch.Tensor:
    return torch.rand(1, 12, 10, 7, generator=torch.Generator().manual_seed(0)) * 2.4 - 1.2


def strong_of(image: torch.Tensor, seed: int = 0, **changes: float) -> torch.Tensor:
    return RandStrongView(StrongChanges(**{**NONE, **changes})).set_random_state(seed)({"image": image})["strong"]


@pytest.mark.parametrize("power", [0.6, 1.0, 1.65])
def test_gamma_is_monais_on_values_below_zero_too(image, power):
    expected = torch.as_tensor(mt.AdjustContrast(power)(image))
    torch.testing.assert_close(raised(image, power), expected, atol=1e-5, rtol=0)


def test_gamma_keeps_both_ends_and_the_order_of_values(image):
    found = raised(image, 1.5)
    assert found.isfinite().all()
    torch.testing.assert_close(torch.stack(found.aminmax()), torch.stack(image.aminmax()))
    assert torch.equal(found.flatten().argsort(), image.flatten().argsort())


def test_gamma_leaves_a_patch_of_one_value_alone():
    air = torch.full((1, 4, 4, 2), -1.0)
    assert torch.equal(raised(air, 1.5), air)


@pytest.mark.parametrize("deviation", [0.2, 0.5, 1.0, 1.7])
@pytest.mark.parametrize("size", [(12, 10, 7), (12, 10, 1), (3, 4, 2)])
def test_blur_is_scipys_with_the_border_going_on(size, deviation):
    image = torch.randn(2, *size, generator=torch.Generator().manual_seed(0))
    expected = [ndimage.gaussian_filter(channel, deviation, mode="nearest", truncate=3) for channel in image.numpy()]
    torch.testing.assert_close(blurred(image, deviation), torch.from_numpy(np.stack(expected)), atol=1e-5, rtol=0)


def test_blur_does_not_brighten_the_air_at_the_border():
    air = torch.full((1, 6, 6, 6), -1.0)
    torch.testing.assert_close(blurred(air, 1.0), air)


def test_without_any_change_the_strong_view_is_the_weak_one(image):
    torch.testing.assert_close(strong_of(image), image, atol=1e-5, rtol=0)


def test_noise_has_a_deviation_up_to_the_strength_and_mean_zero():
    flat = torch.zeros(1, 32, 32, 16)
    deviations = [float(strong_of(flat, seed, noise=0.2).std()) for seed in range(40)]
    assert max(deviations) < 0.205 and min(deviations) < 0.03 and max(deviations) > 0.17
    assert abs(float(strong_of(flat, 3, noise=0.2).mean())) < 0.01


def test_blur_comes_as_often_as_asked_for(image):
    blurs = [not torch.allclose(strong_of(image, seed, blur_probability=0.3), image, atol=1e-4) for seed in range(300)]
    assert 0.15 < np.mean(blurs) < 0.36  # those of less than a sixth of a voxel change nothing


def test_numbers_are_spread_over_their_limits():
    view = RandStrongView(StrongChanges())
    view.set_random_state(0)
    drawn = []
    for _ in range(500):
        view.randomize()
        drawn.append((view.factor, view.offset, math.log(view.power), view.deviation, view.noise))
    lowest, highest = np.min(drawn, axis=0), np.max(drawn, axis=0)
    np.testing.assert_allclose(lowest, [0.6, -0.4, -0.5, 0, 0], atol=0.03)
    np.testing.assert_allclose(highest, [1.4, 0.4, 0.5, 1, 0.2], atol=0.03)


def test_strong_view_comes_from_the_seed_and_leaves_the_image_alone(image):
    before, view = image.clone(), RandStrongView(StrongChanges())
    first, again, other = (view.set_random_state(seed)({"image": image, "id": "a"}) for seed in (1, 1, 2))
    assert torch.equal(first["strong"], again["strong"]) and not torch.equal(first["strong"], other["strong"])
    assert torch.equal(image, before) and first["image"] is image and first["id"] == "a"
    assert first["strong"].dtype == torch.float32 and first["strong"].shape == image.shape
