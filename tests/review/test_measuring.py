import itertools

import nibabel as nib
import numpy as np
import pytest

from medssl.core.errors import DataError
from medssl.data.volumes import write_nifti
from medssl.report.figures.slices import to_radiological
from medssl.review.effort import Effort
from medssl.review.measuring import measure, read_maps, recorded_names, spread_out, view_of
from medssl.review.sources import source_of_run
from medssl.uncertainty.ranking import SliceNeed


@pytest.fixture
def case(make_run):
    return source_of_run(make_run({"a": 0.6})).cases[0]


def test_a_case_of_a_run_is_described_from_its_maps(case):
    found = measure(case, {1: "kidney", 2: "tumour"}, Effort())
    assert found.record["structures"]["kidney"]["volume_ml"] == pytest.approx(6**3 * 16 / 1000)
    assert found.record["score"] == pytest.approx(
        np.mean([s["surroundings_entropy_bits"] for s in found.record["structures"].values()]), abs=1e-6
    )
    assert (found.plane, found.axis, found.work.slices) == ("axial", 2, 4)
    assert found.work.area_cm2 == pytest.approx(4 * 8 * 8 * 4 / 100)
    assert set(found.slices) <= {5, 6, 7, 8} and len(found.slices) == 2  # slices are 4 mm thick, pictures 5 mm apart


@pytest.mark.parametrize("missing", ["seg", "entropy"])
def test_a_missing_map_is_named(case, missing):
    (case.folder / f"a_{missing}.nii.gz").unlink()
    with pytest.raises(DataError, match=rf"a_{missing}.nii.gz: no .* Predict the case again"):
        read_maps(case)


def test_an_entropy_map_of_another_size_is_refused_with_both_sizes(case):
    write_nifti(case.folder / "a_entropy.nii.gz", np.zeros((24, 20, 15)), np.diag([2.0, 2.0, 4.0, 1.0]), np.float32)
    with pytest.raises(DataError, match=r"\(24, 20, 15\) voxels of 2 x 2 x 4 mm, its segmentation has \(24, 20, 16\)"):
        read_maps(case)


def test_a_prediction_that_lies_elsewhere_than_its_scan_is_refused(case):
    for name in ("seg", "entropy"):
        image = nib.load(case.folder / f"a_{name}.nii.gz")
        moved = image.affine.copy()
        moved[0, 3] += 7
        write_nifti(case.folder / f"a_{name}.nii.gz", np.asarray(image.dataobj), moved, np.float32)
    with pytest.raises(DataError, match=r"a_seg.nii.gz: lies elsewhere than its scan"):
        read_maps(case)


def test_an_entropy_that_is_no_number_is_refused(case):
    image = nib.load(case.folder / "a_entropy.nii.gz")
    values = np.asarray(image.dataobj).copy()
    values[0, 0, 0] = np.nan
    write_nifti(case.folder / "a_entropy.nii.gz", values, image.affine, np.float32)
    with pytest.raises(DataError, match="no numbers"):
        read_maps(case)


def test_slices_are_spread_out_and_empty_ones_left_out():
    needs = [
        SliceNeed(2, index, bits) for index, bits in [(7, 9.0), (8, 8.0), (2, 7.0), (4, 6.0), (12, 1.0), (20, 0.0)]
    ]
    assert [need.index for need in spread_out(needs, 3, 5)] == [7, 2, 12]
    assert [need.index for need in spread_out(needs, 3, 2)] == [7, 2]


def test_the_slice_shown_is_the_slice_ranked_however_the_scan_is_stored():
    values = np.arange(4 * 5 * 6).reshape(4, 5, 6)
    for axes in itertools.permutations(range(3)):
        for signs in itertools.product((1, -1), repeat=3):
            affine = np.eye(4)
            affine[:3, :3] = np.eye(3)[list(axes)] * signs
            turned = to_radiological(values, affine)[0]
            for axis, index in ((0, 1), (1, 3), (2, 5)):
                view = view_of(affine, values.shape, axis, index)
                shown, ranked = np.take(turned, view.index, view.axis), np.take(values, index, axis)
                assert sorted(shown.ravel()) == sorted(ranked.ravel())


def test_names_follow_the_classes_of_the_record():
    structures = {"aorta": {"class": 2}, "liver": {"class": 1}}
    assert recorded_names({"structures": structures}) == {1: "liver", 2: "aorta"}


def test_record_of_an_older_version_asks_for_a_new_prediction():
    with pytest.raises(DataError, match=r"case one: its record numbers no structures.*[Pp]redict"):
        recorded_names({"id": "one", "structures": {"aorta": {"volume_ml": 1.0}}})
