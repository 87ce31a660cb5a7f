"""Where voxels count: the body without the air around it, and what is near a structure, checked by brute force."""

import numpy as np
import pytest

from medssl.core.errors import DataError
from medssl.metrics.counted_region import body_region, near_structures, otsu_threshold


def ellipse(shape=(24, 20, 6)):
    x, y, _ = np.indices(shape)
    return ((x - 12) / 9) ** 2 + ((y - 10) / 7) ** 2 < 1


def test_body_of_a_ct_has_its_lung_and_neither_air_nor_table():
    body = ellipse()
    scan = np.where(body, 40.0, -1000.0)
    scan[10:13, 8:11, 2:4] = -900  # a lung
    scan[:, 19, :] = 200  # a table that does not touch
    assert np.array_equal(body_region(scan, is_ct=True), body)


def test_body_of_an_mr_is_parted_from_the_noise_around_it():
    body = ellipse()
    noise = np.random.default_rng(0).normal(0, 5, body.shape)
    found = body_region(np.where(body, 300.0, 20.0) + noise, is_ct=False)
    assert np.array_equal(found, body)


@pytest.mark.parametrize("is_ct", [True, False])
def test_scan_without_any_difference_is_body(is_ct):
    assert body_region(np.full((4, 4, 4), -1000.0), is_ct).all()


def test_otsus_threshold_is_the_best_of_all():
    rng = np.random.default_rng(1)
    values = np.concatenate([rng.normal(10, 2, 500), rng.normal(40, 6, 300)])
    edges = np.histogram(values, bins=256)[1][1:-1]

    def between(threshold):
        low, high = values[values < threshold], values[values >= threshold]
        return len(low) * len(high) * (low.mean() - high.mean()) ** 2

    # the histogram's centres stand for its values: nearly the best is as good
    assert between(otsu_threshold(values)) >= 0.999 * max(between(edge) for edge in edges)
    with pytest.raises(DataError, match="finite"):
        otsu_threshold(np.array([1.0, np.nan]))


@pytest.mark.parametrize("distance_mm", [0.0, 2.0, 3.5, 100.0])
def test_what_is_near_a_structure_is_what_brute_force_finds(distance_mm):
    rng = np.random.default_rng(2)
    label = np.where(rng.random((9, 8, 7)) > 0.98, rng.integers(1, 3, (9, 8, 7)), 0)
    spacing = np.array([1.0, 1.5, 3.0])
    structures = np.argwhere(label > 0) * spacing
    assert len(structures) > 1
    expected = np.zeros(label.shape, dtype=bool)
    for place in np.ndindex(label.shape):
        lengths = np.linalg.norm(structures - place * spacing, axis=1)
        expected[place] = lengths.min() <= distance_mm
    assert np.array_equal(near_structures(label, spacing, distance_mm), expected)


def test_nothing_is_near_where_there_is_no_structure():
    assert not near_structures(np.zeros((4, 4, 4)), (1, 1, 1), 10).any()
