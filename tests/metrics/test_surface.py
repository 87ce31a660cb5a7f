"""Surface distances against all pairs of surface voxels, against medpy, and the golden value H1."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from medssl.metrics.surface import surface_measures, surface_voxels

SPACING_MM = (0.7, 1.3, 3.0)
MASK_PAIRS = array_shapes(min_dims=1, max_dims=3, max_side=6).flatmap(
    lambda shape: st.tuples(arrays(np.bool_, shape), arrays(np.bool_, shape))
)
BOTH_OCCUPIED = MASK_PAIRS.filter(lambda masks: masks[0].any() and masks[1].any())


def surface_by_looking_at_each_voxel(mask):
    """Voxels with a face neighbour that is background or outside the array."""
    found = []
    for voxel in np.argwhere(mask):
        for axis, step in itertools.product(range(mask.ndim), (-1, 1)):
            neighbour = voxel.copy()
            neighbour[axis] += step
            if not 0 <= neighbour[axis] < mask.shape[axis] or not mask[tuple(neighbour)]:
                found.append(tuple(voxel))
                break
    return found


def measures_from_all_pairs(prediction, label, spacing_mm):
    points = [np.array(surface_by_looking_at_each_voxel(mask)) * spacing_mm for mask in (prediction, label)]
    pairs = np.linalg.norm(points[0][:, None] - points[1][None], axis=-1)
    to_label, to_prediction = pairs.min(axis=1), pairs.min(axis=0)
    pooled = np.concatenate([to_label, to_prediction])
    return np.percentile(pooled, 95), to_label.mean(), pooled.mean()


def ellipsoid(shape, centre, radii):
    grid = np.ogrid[tuple(slice(0, size) for size in shape)]
    return sum(((x - c) / r) ** 2 for x, c, r in zip(grid, centre, radii, strict=True)) < 1


def realistic_pairs():
    shape = (40, 36, 24)
    ball, shifted = ellipsoid(shape, (20, 18, 12), (10, 8, 6)), ellipsoid(shape, (22, 17, 12), (11, 7, 6))
    speckled = ball ^ (np.random.default_rng(0).random(shape) < 0.02)
    noise = np.random.default_rng(1).random(shape) < 0.3
    return {
        "shifted": (ball, shifted),
        "speckled": (speckled, ball),
        "cut by border": (ellipsoid(shape, (0, 35, 12), (10, 8, 6)), shifted),
        "far too large": (ellipsoid(shape, (20, 18, 12), (20, 18, 12)), ellipsoid(shape, (20, 18, 12), (4, 4, 2))),
        "far away": (ellipsoid(shape, (4, 4, 4), (3, 3, 3)), ellipsoid(shape, (34, 30, 20), (4, 4, 3))),
        "everything": (np.ones(shape, bool), ball),
        "noise": (noise, ball),
    }


PAIRS = realistic_pairs()


def test_golden_h1():
    prediction, label = np.zeros((10, 10), bool), np.zeros((10, 10), bool)
    prediction[1:4, 1:4] = prediction[8, 8] = label[1:4, 1:6] = True
    measures = surface_measures(prediction, label, (1, 1))
    assert measures.hd95 == pytest.approx(2.0)
    assert measures.asd == pytest.approx(0.75899465)
    # 9 surface voxels of the prediction, 12 of the label
    assert measures.assd == pytest.approx((9 * 0.75899465 + 12 * 0.66666667) / 21)
    assert surface_measures(label, prediction, (1, 1)).asd == pytest.approx(0.66666667)


@settings(deadline=None)
@given(arrays(np.bool_, array_shapes(min_dims=1, max_dims=3, max_side=5)))
def test_surface_is_where_a_face_neighbour_is_outside(mask):
    assert {tuple(voxel) for voxel in np.argwhere(surface_voxels(mask))} == set(surface_by_looking_at_each_voxel(mask))


@settings(max_examples=60, deadline=None)
@given(BOTH_OCCUPIED)
def test_equal_to_all_pairs_of_surface_voxels(masks):
    spacing_mm = SPACING_MM[: masks[0].ndim]
    assert surface_measures(*masks, spacing_mm) == pytest.approx(measures_from_all_pairs(*masks, spacing_mm))


@pytest.mark.parametrize("masks", PAIRS.values(), ids=PAIRS)
def test_realistic_masks_are_equal_to_all_pairs(masks):
    assert surface_measures(*masks, SPACING_MM) == pytest.approx(measures_from_all_pairs(*masks, SPACING_MM), abs=1e-9)


@pytest.mark.parametrize("masks", PAIRS.values(), ids=PAIRS)
def test_equal_to_medpy(masks):
    medpy = pytest.importorskip("medpy.metric.binary")
    prediction, label = masks
    measures = surface_measures(prediction, label, SPACING_MM)
    for name in ("hd95", "asd", "assd"):
        expected = getattr(medpy, name)(prediction, label, SPACING_MM)
        assert getattr(measures, name) == pytest.approx(expected, abs=1e-6), name


def test_assd_pools_both_directions():
    label = np.zeros((1, 20), bool)
    label[0, 0] = True
    prediction = np.ones((1, 20), bool)
    # 9.5 mm on average from 20 voxels, 0 mm back from 1
    assert surface_measures(prediction, label, (1, 1)).assd == pytest.approx(9.5 * 20 / 21)


@settings(max_examples=40, deadline=None)
@given(BOTH_OCCUPIED, st.floats(0.1, 10))
def test_distances_scale_with_the_spacing(masks, factor):
    spacing_mm = np.array(SPACING_MM[: masks[0].ndim])
    scaled = surface_measures(*masks, spacing_mm * factor)
    assert scaled == pytest.approx(np.multiply(surface_measures(*masks, spacing_mm), factor))


@settings(max_examples=40, deadline=None)
@given(MASK_PAIRS)
def test_hd95_and_assd_are_symmetric(masks):
    spacing_mm = SPACING_MM[: masks[0].ndim]
    there, back = surface_measures(*masks, spacing_mm), surface_measures(*masks[::-1], spacing_mm)
    assert (there.hd95, there.assd) == pytest.approx((back.hd95, back.assd))


def test_distances_do_not_depend_on_empty_space_around_the_masks():
    prediction, label = PAIRS["shifted"]
    margins = [(7, 0), (2, 9), (1, 4)]
    padded = surface_measures(np.pad(prediction, margins), np.pad(label, margins), SPACING_MM)
    assert padded == pytest.approx(surface_measures(prediction, label, SPACING_MM))


def test_equal_masks_have_no_distance():
    ball = PAIRS["shifted"][0]
    assert surface_measures(ball, ball, SPACING_MM) == (0, 0, 0)


def test_two_empty_masks_have_no_distance():
    empty = np.zeros((3, 4, 5), bool)
    assert surface_measures(empty, empty, SPACING_MM) == (0, 0, 0)


@pytest.mark.parametrize("empty_first", [True, False])
def test_one_empty_mask_is_the_image_diagonal_away(empty_first):
    masks = [np.zeros((3, 4, 5), bool), np.ones((3, 4, 5), bool)]
    prediction, label = masks if empty_first else masks[::-1]
    diagonal_mm = ((3 * 0.7) ** 2 + (4 * 1.3) ** 2 + (5 * 3.0) ** 2) ** 0.5
    assert surface_measures(prediction, label, SPACING_MM) == pytest.approx((diagonal_mm,) * 3)
