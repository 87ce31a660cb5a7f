"""Which way up a slice is, which slices are chosen, and what a label map does."""

import nibabel as nib
import numpy as np
import pytest

from medssl.core.errors import DataError
from medssl.report import load_run
from medssl.report.figures.slices import CaseVolumes, View, load_case, map_label, telling_views, to_radiological, zoom


def marked(axis_codes):
    """A volume stored with `axis_codes`, with a mark at the patient's right, front and top, and its affine."""
    ras = np.zeros((4, 5, 6))
    ras[-1, -1, -1] = 1
    image = nib.Nifti1Image(ras, np.diag([1.0, 2.0, 3.0, 1.0]))
    turn = nib.orientations.ornt_transform(
        nib.io_orientation(image.affine), nib.orientations.axcodes2ornt(tuple(axis_codes))
    )
    stored = image.as_reoriented(turn)
    return stored.get_fdata(), stored.affine


@pytest.mark.parametrize("axis_codes", ["RAS", "LPS", "SAR", "PIL"])
def test_right_is_left_and_front_is_up_however_the_scan_is_stored(axis_codes):
    volume, spacing_mm = to_radiological(*marked(axis_codes))

    assert spacing_mm == (1.0, 2.0, 3.0)
    assert View(2, 5, "").of(volume)[0, 0] == 1  # axial: right on the left, front at the top
    assert View(1, 4, "").of(volume)[0, 0] == 1  # coronal: right on the left, head at the top
    assert View(0, 0, "").of(volume)[0, 0] == 1  # sagittal: front on the left, head at the top


def test_pixels_have_the_size_of_the_two_axes_shown():
    assert View(2, 0, "").pixel_mm((1.0, 2.0, 3.0)) == (1.0, 2.0)
    assert View(0, 0, "").pixel_mm((1.0, 2.0, 3.0)) == (2.0, 3.0)


def test_label_ids_outside_the_map_become_background():
    label = np.array([0, 1, 2, 7])
    assert map_label(label, {"1": 1, "2": 1}).tolist() == [0, 1, 1, 0]
    assert map_label(label, None).tolist() == [0, 1, 2, 7]


def volumes(entropy_at=None):
    prediction = np.zeros((40, 40, 40), dtype=int)
    prediction[18:22, 18:22, 10:30] = 1
    prediction[16:24, 16:24, 20] = 1
    entropy = None if entropy_at is None else np.zeros(prediction.shape)
    if entropy is not None:
        entropy[20, 20, entropy_at] = 1.0
    return CaseVolumes(np.zeros(prediction.shape), prediction, None, entropy, (5.0, 5.0, 5.0))


def test_views_are_the_largest_and_the_most_uncertain_slices():
    views = telling_views(volumes(entropy_at=12))
    assert [(view.axis, view.index) for view in views[:2]] == [(2, 20), (2, 12)]
    assert views[2].axis == 1
    assert [view.axis for view in telling_views(volumes())] == [2, 1, 0]


def test_zoom_keeps_structures_and_uncertain_voxels_with_a_margin():
    assert zoom(volumes()).image.shape == (18, 18, 30)
    assert zoom(volumes(entropy_at=39)).image.shape == (18, 18, 35)


def test_a_case_is_loaded_with_its_label_mapped(finished_run):
    case = load_case(load_run(finished_run), "case_a")

    assert case.spacing_mm == (2.0, 2.0, 4.0)
    assert set(np.unique(case.label)) == {0, 1}
    assert case.image.shape == case.prediction.shape == case.entropy.shape


def test_a_prediction_on_another_grid_is_refused(make_run):
    folder = make_run()
    file = folder / "evaluation" / "predictions" / "case_a_seg.nii.gz"
    nib.save(nib.Nifti1Image(np.zeros((4, 4, 4), dtype=np.int16), np.eye(4)), file)
    with pytest.raises(DataError, match=r"case_a: prediction has \(4, 4, 4\) voxels"):
        load_case(load_run(folder), "case_a")


def test_a_case_the_split_does_not_know_is_refused(finished_run):
    with pytest.raises(DataError, match=r"stranger: not in split\.json"):
        load_case(load_run(finished_run), "stranger")
