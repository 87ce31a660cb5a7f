"""The region lies around the body, inside the scan, and knows nothing of the label unless asked to."""

import pickle

import pytest
import torch

from medssl.data.regions import BodyRegion, LabelRegion


def box(mask: torch.Tensor) -> list[tuple[int, int]]:
    """(start, end) along each axis; fails unless the mask is exactly that box."""
    found = mask[0].nonzero()
    low, high = found.min(0).values.tolist(), (found.max(0).values + 1).tolist()
    assert mask[0][tuple(slice(a, b) for a, b in zip(low, high, strict=True))].all()
    assert mask.sum() == torch.tensor([b - a for a, b in zip(low, high, strict=True)]).prod()
    return list(zip(low, high, strict=True))


def blob(rows: slice, columns: slice, depth: slice = slice(None), background: float = -1.0) -> torch.Tensor:
    volume = torch.full((1, 40, 50, 12), background)
    volume[:, rows, columns, depth] = 1.0
    return volume


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (blob(slice(10, 20), slice(30, 36)), [(7, 23), (27, 39), (0, 12)]),  # centres 15 and 33
        (blob(slice(0, 4), slice(0, 4)), [(0, 16), (0, 12), (0, 12)]),
        (blob(slice(36, 40), slice(46, 50)), [(24, 40), (38, 50), (0, 12)]),
        (torch.full((1, 40, 50, 12), 7.0), [(12, 28), (19, 31), (0, 12)]),  # nothing to see: the middle
    ],
    ids=["inside", "low corner", "high corner", "even"],
)
def test_body_region_lies_around_the_bright_part_and_inside_the_scan(image, expected):
    assert box(BodyRegion((16, 12))(image)) == expected


def test_body_region_does_not_depend_on_the_zero_of_the_scale():
    image = blob(slice(10, 20), slice(30, 36))
    assert torch.equal(BodyRegion((16, 12))(image), BodyRegion((16, 12))(1000 + 5 * image))


@pytest.mark.parametrize("region", [BodyRegion((160, 20)), LabelRegion((160, 20))])
def test_region_larger_than_the_scan_is_the_scan(region):
    volume = blob(slice(10, 20), slice(30, 36), background=0)
    assert box(region(volume))[:2] == [(0, 40), (23, 43)]


@pytest.mark.parametrize(
    ("depth", "margin", "expected"),
    [(slice(5, 7), 2, (3, 9)), (slice(0, 2), 2, (0, 4)), (slice(11, 12), 2, (9, 12)), (slice(5, 7), 8, (0, 12))],
)
def test_label_region_lies_around_the_bounding_box_with_a_margin_of_slices(depth, margin, expected):
    label = blob(slice(10, 20), slice(30, 36), depth, background=0)
    label[:, 10, 40, depth] = 2  # one far voxel widens the box to columns 30..41
    assert box(LabelRegion((16, 12), margin)(label)) == [(7, 23), (30, 42), expected]


def test_label_region_of_an_empty_label_is_the_middle():
    assert box(LabelRegion((16, 12))(torch.zeros(1, 40, 50, 12))) == [(12, 28), (19, 31), (0, 12)]


def test_regions_are_values_that_a_cache_can_tell_apart():
    assert pickle.dumps(BodyRegion((16, 12))) == pickle.dumps(BodyRegion((16, 12)))
    assert pickle.dumps(BodyRegion((16, 12))) != pickle.dumps(BodyRegion((16, 14)))
    assert pickle.loads(pickle.dumps(LabelRegion((16, 12), 3))) == LabelRegion((16, 12), 3)
