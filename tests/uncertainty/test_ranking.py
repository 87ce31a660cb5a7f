"""Scores of cases, structures and slices against plain loops over voxels."""

import itertools

import numpy as np
import pytest

from medssl.uncertainty.ranking import BANDS, slice_needs, structure_scores, surroundings, uncertainty_bands

SPACING = (1.0, 1.5, 2.5)


@pytest.fixture
def found():
    """A segmentation with two structures, and an entropy map."""
    rng = np.random.default_rng(0)
    segmentation = np.zeros((12, 10, 8), dtype=np.uint8)
    segmentation[4:7, 3:5, 2:4], segmentation[8, 8, 6] = 1, 2
    return segmentation, rng.random(segmentation.shape).astype(np.float32)


@pytest.mark.parametrize("reach_mm", [0.5, 2.6, 4.0, 100.0])
def test_surroundings_are_all_voxels_within_reach(found, reach_mm):
    inside = found[0] == 1
    places = np.argwhere(inside) * SPACING
    expected = np.zeros_like(inside)
    for voxel in itertools.product(*(range(n) for n in inside.shape)):
        expected[voxel] = np.linalg.norm(places - np.asarray(voxel) * SPACING, axis=1).min() <= reach_mm
    assert np.array_equal(surroundings(inside, SPACING, reach_mm), expected)


def test_nothing_has_no_surroundings():
    assert not surroundings(np.zeros((3, 3, 3), dtype=bool), SPACING).any()


def test_score_of_a_structure_is_the_mean_entropy_around_it_however_large_the_field_of_view(found):
    segmentation, entropy = found
    scores = structure_scores(segmentation, entropy, SPACING, {1: "head", 2: "tail"}, reach_mm=3.0)
    for number, name in {1: "head", 2: "tail"}.items():
        assert scores[name] == pytest.approx(entropy[surroundings(segmentation == number, SPACING, 3.0)].mean())
    wider = [np.pad(array, 20) for array in found]
    assert structure_scores(*wider, SPACING, {2: "tail"}, 1.0) == structure_scores(*found, SPACING, {2: "tail"}, 1.0)


def test_missing_structure_scores_by_the_most_uncertain_percent():
    nothing, entropy = np.zeros((10, 10, 10), dtype=np.uint8), np.zeros((10, 10, 10))
    entropy[0, 0, :10] = np.linspace(0.1, 1, 10)
    assert structure_scores(nothing, entropy, SPACING, {1: "liver"}) == {"liver": pytest.approx(0.55)}
    assert structure_scores(nothing, 0 * entropy, SPACING, {1: "liver"}) == {"liver": 0.0}


def test_slices_are_ordered_by_the_entropy_around_the_structures(found):
    segmentation, entropy = found
    near = surroundings(segmentation > 0, SPACING, 3.0)
    sums = [(entropy[..., z] * near[..., z]).sum() for z in range(8)]
    needs = slice_needs(segmentation, entropy, SPACING, 3.0)
    assert [need.index for need in needs] == sorted(range(8), key=lambda z: -sums[z])
    assert needs[0].axis == 2 and needs[0].entropy_bits == pytest.approx(max(sums), rel=1e-6)


@pytest.mark.parametrize(("spacing", "axis"), [((1, 1, 1), 2), ((3, 1, 1), 0), ((1, 2, 2), 2), ((1, 3, 2), 1)])
def test_slices_lie_across_the_coarsest_axis(found, spacing, axis):
    needs = slice_needs(*found, spacing)
    assert {need.axis for need in needs} == {axis} and len(needs) == found[0].shape[axis]


def test_slices_of_an_empty_prediction_count_all_voxels(found):
    nothing = np.zeros_like(found[0])
    assert slice_needs(nothing, found[1], SPACING)[0].index == int(found[1].sum((0, 1)).argmax())


def test_bands_are_shares_of_the_largest_entropy():
    entropy = np.array([0.0, 0.19, 0.21, 0.51, 0.79, 0.81, 1.0])
    assert uncertainty_bands(entropy, 2).tolist() == [0, 0, 1, 2, 2, 3, 3]
    assert uncertainty_bands(2 * entropy, 4).tolist() == uncertainty_bands(entropy, 2).tolist()
    assert sorted(BANDS) == [1, 2, 3]
