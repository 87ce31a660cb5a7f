"""The generated scans: repeatable, plausible, and never written over something else."""

import json

import nibabel as nib
import numpy as np
import pytest
from scipy import ndimage

from medssl.core.errors import ConfigError, DataError
from medssl.data.phantom import draw_phantom, write_phantoms
from medssl.data.phantom.appearance import bias_field

SMALL = (32, 32, 12)


@pytest.fixture(scope="module")
def full_size():
    return [draw_phantom(index) for index in range(4)]


@pytest.fixture(scope="module")
def many_small():
    return [draw_phantom(index, shape=SMALL) for index in range(30)]


@pytest.fixture(scope="module")
def small_set(tmp_path_factory):
    root = tmp_path_factory.mktemp("phantoms") / "set"
    write_phantoms(root, count=3, shape=SMALL)
    return root


def bytes_below(root):
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*.nii.gz"))}


def body_of(image_hu):
    inside = ndimage.binary_opening(image_hu > -300, iterations=2)
    parts, _ = ndimage.label(inside)
    largest = 1 + np.argmax(np.bincount(parts.ravel())[1:])
    return ndimage.binary_fill_holes(ndimage.binary_dilation(parts == largest, iterations=2))


def test_ids_name_the_files_written(tmp_path):
    assert write_phantoms(tmp_path, count=2, shape=SMALL) == ["phantom_000", "phantom_001"]
    expected = {f"{folder}/phantom_00{i}.nii.gz" for folder in ("images", "labels") for i in (0, 1)}
    assert set(bytes_below(tmp_path)) == expected
    assert json.loads((tmp_path / "phantom.json").read_text())["count"] == 2


def test_same_seed_gives_the_same_bytes(small_set, tmp_path):
    write_phantoms(tmp_path, count=3, shape=SMALL)
    assert bytes_below(tmp_path) == bytes_below(small_set)


def test_another_seed_gives_other_bytes(small_set, tmp_path):
    write_phantoms(tmp_path, count=3, seed=1, shape=SMALL)
    first = bytes_below(small_set)
    assert all(content != first[name] for name, content in bytes_below(tmp_path).items())


def test_a_case_does_not_depend_on_how_many_there_are(small_set, tmp_path):
    write_phantoms(tmp_path, count=1, shape=SMALL)
    first = bytes_below(small_set)
    assert all(content == first[name] for name, content in bytes_below(tmp_path).items())


def test_ct_holds_hounsfield_values_from_air_to_bone(full_size):
    for image, _, _ in full_size:
        assert image.dtype == np.int16
        assert -1024 <= image.min() < -900
        assert 250 < image.max() < 1500
        assert np.median(image[:3, :3]) == pytest.approx(-1000, abs=30)


def test_kidneys_lie_in_the_range_of_all_contrast_phases(many_small):
    medians_hu = [np.median(image[label == 1]) for image, label, _ in many_small]
    assert 0 < min(medians_hu) < 60
    assert 110 < max(medians_hu) < 185


def test_noise_of_the_surrounding_air_is_that_of_a_ct(full_size):
    for image, _, _ in full_size:
        assert 10 < image[:4, :4].astype(float).std() < 33


def test_label_lies_inside_the_body(full_size):
    for image, label, _ in full_size:
        assert not (label[~body_of(image)] > 0).any()


def test_every_case_has_kidney_and_known_ids_only(many_small):
    ids = [np.unique(label).tolist() for _, label, _ in many_small]
    assert all(found in ([0, 1], [0, 1, 2]) for found in ids)
    assert 0.4 < np.mean([2 in found for found in ids]) < 0.9


def test_affines_are_plausible_and_vary(full_size):
    spacings_mm = np.array([np.linalg.norm(affine[:3, :3], axis=0) for _, _, affine in full_size])
    assert ((spacings_mm[:, :2] > 2.75) & (spacings_mm[:, :2] < 3.45)).all()
    assert ((spacings_mm[:, 2] >= 4) & (spacings_mm[:, 2] <= 6)).all()
    assert len({tuple(affine[:3, 3]) for _, _, affine in full_size}) == len(full_size)
    assert nib.aff2axcodes(full_size[0].affine) == ("L", "P", "S")


def test_image_and_label_files_share_shape_and_affine(small_set):
    for path in (small_set / "images").iterdir():
        image, label = nib.load(path), nib.load(small_set / "labels" / path.name)
        assert image.shape == label.shape == SMALL
        np.testing.assert_array_equal(image.affine, label.affine)
        assert image.get_data_dtype() == np.int16
        assert label.get_data_dtype() == np.uint8


def test_field_of_view_does_not_depend_on_the_shape():
    small, large = draw_phantom(0, shape=SMALL), draw_phantom(0)
    for axis in range(3):
        small_mm, large_mm = (abs(p.affine[axis, axis]) * p.image.shape[axis] for p in (small, large))
        assert small_mm == pytest.approx(large_mm, abs=0.1)


def test_mr_shows_the_anatomy_of_the_ct_on_its_own_scale():
    ct, mr = draw_phantom(3), draw_phantom(3, modality="mr")
    np.testing.assert_array_equal(ct.label, mr.label)
    assert mr.image.dtype == np.uint16
    assert len({int(draw_phantom(i, modality="mr", shape=SMALL).image.max()) for i in range(4)}) == 4


def test_mr_bias_field_is_smooth_and_spans_its_range():
    field = bias_field(np.random.default_rng(0), (64, 64, 24))
    assert (field.min(), field.max()) == pytest.approx((0.6, 1.4), abs=1e-5)
    assert max(np.abs(np.diff(field, axis=axis)).max() for axis in range(3)) < 0.1


def test_mr_fat_is_shaded_by_the_bias_field():
    """The same tissue differs across the body by more than noise can explain."""
    image = ndimage.gaussian_filter(draw_phantom(0, modality="mr").image.astype(float), 1.5)
    fat = ndimage.binary_erosion(np.abs(draw_phantom(0).image + 100) < 60)
    assert np.percentile(image[fat], 95) > 1.3 * np.percentile(image[fat], 5)


def test_an_existing_set_is_kept(small_set):
    before = {path: path.stat().st_mtime_ns for path in small_set.rglob("*.*")}
    assert len(write_phantoms(small_set, count=3, shape=SMALL)) == 3
    assert {path: path.stat().st_mtime_ns for path in small_set.rglob("*.*")} == before


def test_a_scan_missing_from_an_existing_set_is_written_again(tmp_path):
    write_phantoms(tmp_path, count=2, shape=SMALL)
    before = bytes_below(tmp_path)
    (tmp_path / "images" / "phantom_001.nii.gz").unlink()
    write_phantoms(tmp_path, count=2, shape=SMALL)
    assert bytes_below(tmp_path) == before


def test_an_interrupted_set_is_completed(small_set, tmp_path):
    write_phantoms(tmp_path, count=2, shape=SMALL)
    (tmp_path / "phantom.json").unlink()
    write_phantoms(tmp_path, count=3, shape=SMALL)
    assert bytes_below(tmp_path) == bytes_below(small_set)


@pytest.mark.parametrize("other", [{"count": 4}, {"seed": 5}, {"modality": "mr"}, {"shape": (40, 32, 12)}])
def test_another_set_in_the_folder_is_refused(small_set, other):
    with pytest.raises(DataError, match=r"phantom\.json: holds the set .*expected"):
        write_phantoms(small_set, **{"count": 3, "shape": SMALL, **other})


def test_a_folder_with_other_scans_is_refused(tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "patient_7.nii.gz").touch()
    with pytest.raises(DataError, match=r"patient_7\.nii\.gz: not of this phantom set"):
        write_phantoms(tmp_path, count=1, shape=SMALL)
    assert list(bytes_below(tmp_path)) == ["images/patient_7.nii.gz"]


def test_a_damaged_marker_is_named(tmp_path):
    (tmp_path / "phantom.json").write_text("{")
    with pytest.raises(DataError, match=r"phantom\.json: not JSON"):
        write_phantoms(tmp_path, count=1, shape=SMALL)


@pytest.mark.parametrize(
    "wrong", [{"modality": "pet"}, {"count": 0}, {"seed": -1}, {"shape": (64, 64)}, {"shape": (8, 64, 24)}]
)
def test_arguments_out_of_range_are_refused(tmp_path, wrong):
    with pytest.raises(ConfigError, match="expected"):
        write_phantoms(tmp_path, **wrong)
    assert not any(tmp_path.iterdir())
