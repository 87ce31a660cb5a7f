"""The largest component of each structure, against a search of neighbours one by one."""

import itertools

import pytest
import torch

from medssl.methods.parts import largest_components


def components_by_search(mask, connectivity):
    """Sets of places that are connected, in the order in which their first place comes."""
    steps = [
        step for step in itertools.product((-1, 0, 1), repeat=mask.ndim) if 0 < sum(map(abs, step)) <= connectivity
    ]
    left, components = {tuple(place) for place in mask.nonzero().tolist()}, []
    for first in sorted(left):
        if first not in left:
            continue
        component, waiting = set(), [first]
        left.discard(first)
        while waiting:
            place = waiting.pop()
            component.add(place)
            for step in steps:
                neighbour = tuple(a + b for a, b in zip(place, step, strict=True))
                if neighbour in left:
                    left.discard(neighbour)
                    waiting.append(neighbour)
        components.append(component)
    return components


def largest_by_search(image, connectivity):
    kept = torch.zeros_like(image)
    for label in range(1, int(image.max()) + 1):
        components = components_by_search(image == label, connectivity)
        for place in max(components, key=len, default=()):  # max takes the first of equal ones
            kept[place] = label
    return kept


@pytest.mark.parametrize(("size", "connectivity"), [((14, 12), 1), ((14, 12), 2), ((8, 7, 6), 1), ((8, 7, 6), 3)])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.long])
def test_equal_to_a_search_of_neighbours(size, connectivity, dtype):
    torch.manual_seed(0)
    labels = torch.randint(0, 4, (3, *size)).to(dtype)
    labels[1][labels[1] == 2] = 0  # a class that one image does not have
    before = labels.clone()
    found = largest_components(labels, connectivity)
    assert found.dtype == dtype and torch.equal(labels, before)
    assert torch.equal(found, torch.stack([largest_by_search(image, connectivity) for image in labels]))


@pytest.mark.parametrize("axes", [2, 3])
def test_neighbours_over_corners_count_unless_less_is_asked_for(axes):
    labels = torch.zeros(1, *[4] * axes, dtype=torch.long)
    labels[(0, *[0] * axes)] = labels[(0, *[1] * axes)] = labels[(0, *[3] * axes)] = 1
    whole = largest_components(labels)
    assert int(whole.sum()) == 2 and int(whole[(0, *[3] * axes)]) == 0
    assert int(largest_components(labels, connectivity=1).sum()) == 1


def test_batches_without_structures_or_images_stay_as_they_are():
    assert not largest_components(torch.zeros(2, 5, 5, 5, dtype=torch.uint8)).any()
    assert largest_components(torch.zeros(0, 5, 5, dtype=torch.long)).shape == (0, 5, 5)
