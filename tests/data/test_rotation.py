"""In-plane rotation gives what MONAI's rotation in space gives."""

import numpy as np
import pytest
import torch
from monai import transforms as mt

from medssl.data.rotation import RandRotateInPlaned, rotated_in_plane

SIZES = [(24, 24, 3), (25, 25, 2), (24, 31, 4), (33, 20, 1)]


def volumes(size: tuple[int, ...], channels: int = 1) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return {
        "image": torch.randn(channels, *size, generator=generator),
        "label": torch.randint(0, 4, (channels, *size), generator=generator, dtype=torch.uint8),
    }


@pytest.mark.parametrize("degrees", [-10.0, -3.3, 0.0, 0.7, 10.0, 47.0, 180.0])
@pytest.mark.parametrize("size", SIZES)
def test_equal_to_monai(size, degrees):
    data, angle = volumes(size, channels=2), (0.0, 0.0, float(np.deg2rad(degrees)))
    expected = {
        key: mt.Rotate(angle, mode=mode, padding_mode="border")(data[key])
        for key, mode in (("image", "bilinear"), ("label", "nearest"))
    }
    image = rotated_in_plane(data["image"], angle[2])
    torch.testing.assert_close(image, expected["image"].as_tensor(), atol=1e-4, rtol=0)
    label = rotated_in_plane(data["label"], angle[2], "nearest")
    assert label.dtype == torch.uint8
    assert torch.equal(label, expected["label"].as_tensor().to(torch.uint8))


def test_slices_turn_in_their_plane():
    label = torch.zeros(1, 21, 21, 3, dtype=torch.uint8)
    label[0, 10, 15, 1] = 7
    assert rotated_in_plane(label, np.pi / 2, "nearest").nonzero().tolist() == [[0, 15, 10, 1]]


def test_angle_is_the_same_for_all_keys_and_comes_from_the_seed():
    data = volumes((24, 24, 3))
    data["label"] = (data["image"] > 0).to(torch.uint8)
    transform = RandRotateInPlaned(["image", "label"], ["nearest", "nearest"], 20, prob=1)
    first, again, other = (transform.set_random_state(seed)(data) for seed in (1, 1, 2))
    assert torch.equal(first["label"], (first["image"] > 0).to(torch.uint8))
    assert torch.equal(first["image"], again["image"])
    assert not torch.equal(first["image"], other["image"])


def test_angles_are_spread_over_the_range_and_half_are_left_out():
    transform = RandRotateInPlaned(["image"], ["bilinear"], 10, prob=0.5)
    transform.set_random_state(0)
    drawn = []
    for _ in range(1000):
        transform.randomize()
        drawn.append((transform._do_transform, np.rad2deg(transform.radians)))
    turned, degrees = np.array(drawn).T
    assert 0.45 < turned.mean() < 0.55
    assert -10 <= degrees.min() < -9.9 and 9.9 < degrees.max() <= 10
    assert abs(degrees.mean()) < 0.6


def test_what_is_not_turned_is_passed_on_as_it_is():
    data = volumes((8, 8, 2))
    found = RandRotateInPlaned(["image", "label"], ["bilinear", "nearest"], 10, prob=0)(data)
    assert found["image"] is data["image"] and found["label"] is data["label"]
