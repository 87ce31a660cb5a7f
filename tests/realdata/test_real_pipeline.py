"""Real data sets are found, split and brought to the network's grid and back."""

from typing import Any

import numpy as np
import pytest
import torch
from monai.data import MetaTensor
from monai.transforms import Invertd

from medssl.core.errors import DataError
from medssl.data import Pipeline, dataset_facts, open_dataset, scans_in, split_cases
from medssl.data.layouts import find_folder
from medssl.data.volumes import read_volume

pytestmark = pytest.mark.realdata


def brought_back(pipeline: Pipeline, case: dict[str, Any]) -> np.ndarray:
    """The prepared image on the scan's own grid, by undoing the preprocessing."""
    transform = pipeline.preprocessing(with_label=False)
    prepared = transform(case)
    image = prepared["image"]
    prepared["maps"] = MetaTensor(image.as_tensor(), meta=image.meta, applied_operations=image.applied_operations)
    back = Invertd("maps", transform, orig_keys="image", nearest_interp=False, to_tensor=True)(prepared)["maps"]
    np.testing.assert_allclose(back.affine, read_volume(case["image"]).affine, atol=1e-4)
    return back[0].numpy()


def scaled(values: np.ndarray, low: float, high: float) -> np.ndarray:
    return np.clip(2 * (values - low) / (high - low) - 1, -1, 1)


@pytest.mark.parametrize("folder", ["hippocampus"], indirect=True)
def test_hippocampus_is_split_and_comes_back_exactly(folder):
    source = open_dataset("hippocampus", folder)
    split = split_cases(source, labelled=4)
    assert sum(split.counts.values()) == len(source.cases) == 200
    pipeline = Pipeline(source.facts)
    for case in split.role("test")[:3]:
        values = read_volume(case["image"]).array
        low, high = np.percentile(values, [0.5, 99.5])
        np.testing.assert_allclose(brought_back(pipeline, case), scaled(values, low, high), atol=1e-3)
        label = pipeline.preprocessing()(case)["label"]
        assert all(n >= m for n, m in zip(label.shape[1:], pipeline.geometry.patch_size, strict=True))
        assert set(label.unique().tolist()) == {0, 1, 2}
        assert label.sum() == read_volume(case["label"]).array.sum()


@pytest.mark.parametrize("folder", ["left_atrium"], indirect=True)
def test_left_atrium_follows_its_lists(folder):
    source = open_dataset("left_atrium", folder)
    split = split_cases(source, labelled=8, lists_dir=folder)
    assert split.counts == {"labelled": 8, "unlabelled": 40, "validation": 0, "test": 20}
    first = (folder / "train.list").read_text().split()[:8]
    assert sorted(first) == [case["id"] for case in split.role("labelled")]
    case, pipeline = split.role("labelled")[0], Pipeline(source.facts)
    prepared = pipeline.preprocessing(training=True)(case)
    assert prepared["label"].sum() == read_volume(case["label"]).array.astype(bool).sum()
    assert (prepared["image"].min(), prepared["image"].max()) == (-1, 1)
    patch = pipeline.augmentation()(prepared)
    assert patch["image"].shape == patch["label"].shape == (1, 128, 128, 32)


@pytest.mark.parametrize("folder", ["ct"], indirect=True)
def test_ct_is_windowed_cropped_around_the_body_and_brought_back(folder, tmp_path):
    image, label = folder / "example_ct.nii.gz", folder / "example_seg_fast_force_split.nii.gz"
    if not (image.is_file() and label.is_file()):
        pytest.skip("the CT pair is not there")
    for name, path in (("images", image), ("labels", label)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "example.nii.gz").symlink_to(path)
    source = open_dataset("folder", tmp_path, window=(-100, 250))
    assert source.facts.num_classes > 5
    (case,) = source.cases
    expected = scaled(read_volume(case["image"]).array, -100, 250)
    np.testing.assert_allclose(brought_back(Pipeline(source.facts), case), expected, atol=1e-4)
    cropped = Pipeline(source.facts, region_size=(80, 80), patch_size=(32, 32, 16))
    assert cropped.preprocessing(training=True)(case)["image"].shape[1:3] == (80, 80)
    body = cropped.preprocessing(with_label=False, training=True)(case)["image"]
    assert body.shape[1:3] == (80, 80) and float(body.mean()) > expected.mean()
    np.testing.assert_allclose(brought_back(cropped, case), expected, atol=1e-4)  # predictions see whole slices


@pytest.mark.parametrize("folder", ["dicom"], indirect=True)
def test_dicom_series_are_listed_and_prepared_like_any_scan(folder):
    cases = scans_in(folder)
    assert [case["id"] for case in cases] == ["ct_abdomen", "mr_hippocampus"]
    assert scans_in(folder / "ct_abdomen")[0]["image"] == cases[0]["image"]
    assert {case["patient"] for case in find_folder(folder)} == {case["patient"] for case in cases}
    with pytest.raises(DataError, match="no label found"):
        open_dataset("folder", folder)
    pipeline = Pipeline(dataset_facts("kits19"))
    for case in cases:
        prepared = pipeline.preprocessing(with_label=False)(case)["image"]
        assert torch.isfinite(prepared).all()
        assert brought_back(pipeline, case).shape == read_volume(case["image"]).array.shape
