import base64
import io
import re

import numpy as np
import pytest
from PIL import Image

from medssl.data.volumes import read_volume, write_nifti
from medssl.review.effort import Effort
from medssl.review.measuring import measure
from medssl.review.sources import ReviewCase, source_of_run
from medssl.review.thumbnails import LARGEST, colour, outlines, slice_layers


def pixels(address: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))))


def points(path: str) -> np.ndarray:
    return np.array(
        [[float(number) for number in pair.split(",")] for pair in re.findall(r"[\d.e+-]+,[\d.e+-]+", path)]
    )


@pytest.fixture
def measured(make_run):
    source = source_of_run(make_run({"a": 0.6}))
    return measure(source.cases[0], source.structures, Effort())


def test_layers_are_the_uncertain_slices_in_millimetres(measured):
    first, second = slice_layers(measured, 3, 3, None)
    assert first.title == f"axial {measured.slices[0]}" and second.title == f"axial {measured.slices[1]}"
    assert first.marks == ("R", "L")
    rows, columns = pixels(first.scan).shape[:2]
    assert (columns * 2, rows * 2) == (first.width_mm, first.height_mm)
    assert pixels(first.uncertainty).shape == (rows, columns, 4)


def test_only_uncertain_pixels_are_coloured(measured):
    layers = slice_layers(measured, 1, 3, None)[0]
    opacity = pixels(layers.uncertainty)[..., 3]
    assert (opacity > 0).sum() == 8 * 8 and opacity[0, 0] == 0


@pytest.mark.parametrize("towards_right", [True, False])
def test_the_patients_right_is_on_the_left(tmp_path, towards_right):
    values = np.zeros((30, 20, 10))
    values[3:7, 8:12, 3:6] = 1  # the first voxels of a row, which lead to the patient's right or from there
    for name, dtype in (("seg", "uint8"), ("entropy", "float32")):
        write_nifti(tmp_path / f"a_{name}.nii.gz", values, np.diag([1.0 if towards_right else -1.0, 1, 1, 1]), dtype)
    case = ReviewCase("a", str(tmp_path / "a_entropy.nii.gz"), tmp_path)
    layers = slice_layers(measure(case, {1: "x"}, Effort()), 1, 2, None)[0]
    picture = pixels(layers.scan)[..., 0]
    bright = np.flatnonzero(picture.max(axis=0) > 128)
    expected = (23, 26) if towards_right else (3, 6)
    assert layers.marks == ("R", "L") and (bright[0], bright[-1]) == expected
    across = points(layers.outlines[0][1])[:, 0]
    assert (across.min(), across.max()) == pytest.approx((expected[0], expected[1] + 1), abs=0.01)


def test_outlines_enclose_the_structure_and_are_closed_at_the_border():
    classes = np.zeros((8, 10), int)
    classes[0:4, 2:5] = 2
    ((shade, path),) = outlines(classes, (0.5, 2.0))
    found = points(path)
    assert shade == colour(2) and path.startswith("M") and path.endswith("Z")
    assert found.min(0) == pytest.approx([1.0, 0.0], abs=0.01) and found.max(0) == pytest.approx([2.5, 8.0], abs=0.01)


def test_a_missing_scan_leaves_the_other_layers(measured):
    case = ReviewCase("a", None, measured.case.folder)
    alone = slice_layers(measure(case, {1: "kidney", 2: "tumour"}, Effort()), 1, 3, None)[0]
    assert alone.scan is None and alone.outlines


def test_large_slices_are_made_smaller(tmp_path):
    values = np.zeros((700, 500, 3))
    values[100:600, 100:400, 1] = 1
    for name, dtype in (("seg", "uint8"), ("entropy", "float32")):
        write_nifti(tmp_path / f"a_{name}.nii.gz", values, np.diag([0.5, 0.5, 3.0, 1.0]), dtype)
    case = ReviewCase("a", str(tmp_path / "a_seg.nii.gz"), tmp_path)
    layers = slice_layers(measure(case, {1: "x"}, Effort()), 1, 2, None)[0]
    assert max(pixels(layers.scan).shape) <= LARGEST and max(pixels(layers.uncertainty).shape) <= LARGEST
    assert layers.width_mm == pytest.approx(300) and read_volume(case.image).shape == (700, 500, 3)


def test_a_case_without_any_entropy_has_no_pictures(tmp_path):
    values = np.zeros((20, 20, 5))
    for name, dtype in (("seg", "uint8"), ("entropy", "float32")):
        write_nifti(tmp_path / f"a_{name}.nii.gz", values, np.eye(4), dtype)
    case = ReviewCase("a", str(tmp_path / "a_seg.nii.gz"), tmp_path)
    assert slice_layers(measure(case, {1: "x"}, Effort()), 3, 2, None) == []
