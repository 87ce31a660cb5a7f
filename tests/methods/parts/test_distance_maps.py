"""Signed distance maps: signs, boundaries, scale, and patches without a boundary."""

import torch

from medssl.methods.parts import signed_distance_maps


def label_with_box(start=4, stop=9, size=16):
    label = torch.zeros(1, 1, size, size, size, dtype=torch.uint8)
    label[:, :, start:stop, start:stop, start:stop] = 1
    return label


def test_distances_are_negative_inside_and_positive_outside():
    label = label_with_box()
    (distances,) = signed_distance_maps(label, 2)
    inside = label[0, 0] > 0
    assert distances[0][~inside].min() > 0 and distances[0][inside].max() == 0
    assert distances[0, 6, 6, 6] == -1, "the middle of the box is its deepest voxel"
    assert distances[0, 5, 5, 5] < 0


def test_distances_are_zero_on_the_boundary_and_nowhere_else():
    label = label_with_box()
    (distances,) = signed_distance_maps(label, 2)
    inner = label_with_box(5, 8)
    boundary = (label - inner)[0, 0].bool()
    assert torch.equal(distances[0] == 0, boundary)


def test_each_side_is_scaled_by_its_own_greatest_distance():
    (distances,) = signed_distance_maps(label_with_box(), 2)
    assert distances.min() == -1 and distances.max() == 1
    assert distances[0, 10, 6, 6] == 2 * distances[0, 9, 6, 6]


def test_each_structure_has_a_map_of_its_own():
    label = label_with_box()
    label[:, :, 12:15, 12:15, 12:15] = 2
    (distances,) = signed_distance_maps(label, 3)
    assert distances.shape == (2, 16, 16, 16)
    assert distances[0, 13, 13, 13] > 0 > distances[1, 13, 13, 13]


def test_a_patch_without_the_structure_is_outside_and_a_full_one_inside():
    empty, full = torch.zeros(1, 1, 4, 4, 4), torch.ones(1, 1, 4, 4, 4)
    distances = signed_distance_maps(torch.cat([empty, full]), 2)
    assert (distances[0] == 1).all() and (distances[1] == -1).all()


def test_a_structure_as_thin_as_a_voxel_is_all_boundary():
    label = torch.zeros(1, 1, 8, 8)
    label[..., 4] = 1
    (distances,) = signed_distance_maps(label, 2)
    assert torch.equal(distances[0] == 0, label[0, 0] == 1)
