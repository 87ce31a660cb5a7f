"""Labels as viewers submit them become the model's classes on the scan's grid, or are refused."""

import numpy as np
import pytest

from medssl.core.errors import DataError
from medssl.data.volumes import write_nifti
from medssl.data.voxel_grid import Header, Volume
from medssl.label_app.submitted import placed, read_submitted, segment_names, submitted_label

STRUCTURES = {1: "kidney", 2: "lesion"}
AFFINE = np.diag([1.0, 1.0, 2.0, 1.0])
SCAN = Header((4, 4, 3), AFFINE, np.dtype(np.int16))


@pytest.fixture
def array():
    label = np.zeros((4, 4, 3), np.uint8)
    label[0], label[1] = 1, 2
    return label


def test_ids_without_names_are_the_models_classes(array):
    found = submitted_label(Volume(array, AFFINE), SCAN, STRUCTURES, {}, "a")
    assert np.array_equal(found.array, array) and found.array.dtype == np.uint8


def test_segments_are_told_apart_by_their_names_whatever_ids_the_viewer_gave_them(array):
    found = submitted_label(Volume(array, AFFINE), SCAN, STRUCTURES, {1: "Lesion", 2: " kidney"}, "a")
    assert (found.array[0] == 2).all() and (found.array[1] == 1).all() and not found.array[2:].any()


def test_names_that_slicer_sends_go_by_idx_or_else_by_place(array, tmp_path):
    write_nifti(tmp_path / "label.nii.gz", array, AFFINE, np.uint8)
    by_idx = [{"name": "lesion", "idx": 1}, {"name": "kidney", "idx": 2}]
    by_place = [{"name": "lesion"}, {"name": "kidney"}]
    for info in (by_idx, by_place):
        assert (read_submitted(tmp_path / "label.nii.gz", SCAN, STRUCTURES, info, "a").array[0] == 2).all()


@pytest.mark.parametrize("idx", ["abc", None, [1], {}, float("nan"), float("inf")])
def test_numbers_of_segments_that_are_none_are_refused(idx):
    with pytest.raises(DataError, match="label_info"):
        segment_names([{"name": "kidney", "idx": idx}])


@pytest.mark.parametrize("label_info", ["abc", 3, ["kidney"], {"name": "kidney"}])
def test_names_of_segments_are_objects_in_a_list(label_info):
    with pytest.raises(DataError, match="label_info"):
        segment_names(label_info)


@pytest.mark.parametrize(
    ("change", "names", "part"),
    [
        (lambda a: a * 3, {}, "id 3"),
        (lambda a: a, {1: "high uncertainty"}, "segment 'high uncertainty'"),
        (lambda a: a * 0.5, {}, "no integers"),
        (lambda a: np.full(a.shape, np.nan), {}, "no integers"),
        (lambda a: a[:, :, :2], {}, "shape"),
    ],
)
def test_what_cannot_be_trained_on_is_refused_with_the_reason(array, change, names, part):
    with pytest.raises(DataError, match=part):
        submitted_label(Volume(change(array), AFFINE), SCAN, STRUCTURES, names, "a")


def test_another_grid_is_refused(array):
    moved = AFFINE.copy()
    moved[0, 3] = 5
    with pytest.raises(DataError, match="origin"):
        submitted_label(Volume(array, moved), SCAN, STRUCTURES, {}, "a")


def shifted(steps):
    affine = AFFINE.copy()
    affine[:3, 3] = AFFINE[:3, :3] @ steps
    return affine


def test_slices_that_were_left_out_come_back_empty(array):
    found = placed(Volume(array[..., 1:2], shifted([0, 0, 1])), SCAN)
    assert found.shape == SCAN.shape and np.array_equal(found.affine, AFFINE)
    assert np.array_equal(found.array[..., 1], array[..., 1]) and not found.array[..., [0, 2]].any()


def test_empty_slices_beyond_the_scan_are_dropped(array):
    beyond = np.concatenate([np.zeros_like(array[..., :2]), array], axis=2)
    assert np.array_equal(placed(Volume(beyond, shifted([0, 0, -2])), SCAN).array, array)


@pytest.mark.parametrize("steps", [[0, 0, 0.5], [0, 0, 1], [-1, 0, 0]])
def test_label_between_the_voxels_or_outside_the_scan_stays_and_is_refused(array, steps):
    label = Volume(array, shifted(steps))
    assert placed(label, SCAN) is label
    with pytest.raises(DataError):
        submitted_label(label, SCAN, STRUCTURES, {}, "a")


def test_label_of_another_spacing_stays(array):
    label = Volume(array, np.diag([1.0, 1.0, 2.1, 1.0]))
    assert placed(label, SCAN) is label
