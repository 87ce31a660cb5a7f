"""Sizes of scans on the network's grid, from their headers."""

import nibabel as nib
import numpy as np
import pytest

from medssl.core.errors import ConfigError
from medssl.data import Pipeline, dataset_facts
from medssl.data.scan_shapes import grid_shape, require_fitting_patch, shapes_on_grid


@pytest.fixture
def scan(tmp_path):
    """case(shape, axcodes) -> a case whose scan has this stored shape and these directions."""

    def case(shape, axcodes="RAS"):
        affine = np.eye(4)
        affine[:3, :3] = [[float(code == direction) for code in axcodes] for direction in "RAS"]
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.nii.gz"
        nib.save(nib.Nifti1Image(np.zeros(shape, np.int16), affine), path)
        return {"id": path.name, "image": str(path)}

    return case


def whole(patch_size, **sizes):
    """A pipeline that keeps the scans' own sizes, but for those given."""
    return Pipeline(dataset_facts("phantom"), patch_size=patch_size, **sizes)


def test_a_scan_is_turned_before_its_axes_are_named(scan):
    cases = [scan((10, 20, 30)), scan((30, 10, 20), "SRA"), scan((20, 10, 30), "ARS")]
    assert shapes_on_grid(cases, whole((8, 8, 8))) == [(10, 20, 30)] * 3


def test_slices_are_resized_and_in_training_cropped_and_padded():
    pipeline = whole((48, 48, 40), slice_size=(64, 64), region_size=(32, 56))
    assert grid_shape((10, 20, 30), pipeline) == (64, 64, 30)
    assert grid_shape((10, 20, 30), pipeline, training=True) == (48, 56, 40)


def test_region_at_the_centre_is_cut_in_prediction_too():
    pipeline = whole((8, 8, 8), slice_size=(64, 64), region_size=(32, 56), region="centre")
    assert grid_shape((10, 20, 30), pipeline) == grid_shape((10, 20, 30), pipeline, training=True) == (32, 56, 30)


def test_files_that_cannot_be_read_are_passed_over(scan, tmp_path):
    broken = tmp_path / "broken.nii.gz"
    broken.write_bytes(b"nothing")
    cases = [{"id": "broken", "image": str(broken)}, {"id": "none"}, scan((10, 20, 30))]
    assert shapes_on_grid(cases, whole((8, 8, 8))) == [(10, 20, 30)]
    require_fitting_patch(cases[:2], whole((500, 500, 500)))


def test_a_patch_may_be_twice_as_long_as_the_largest_scan(scan):
    cases = [scan((10, 40, 30)), scan((20, 20, 30))]
    require_fitting_patch(cases, whole((40, 80, 60)))
    with pytest.raises(ConfigError) as caught:
        require_fitting_patch(cases, whole((41, 80, 16)))
    assert str(caught.value) == (
        "patch_size 41,80,16: the largest scan has 20,40,30 voxels after resizing. A patch may be 2 times as long "
        "in an axis. Give a --patch_size of at most 40,80,16."
    )


def test_what_is_resized_is_compared_after_it(scan):
    require_fitting_patch([scan((10, 10, 30))], whole((128, 128, 32), slice_size=(64, 64)))
