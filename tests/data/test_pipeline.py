"""The network sees the thesis' grid and scale, however a scan is stored; a label decides nothing; all can be undone."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pytest
import torch
from monai.data import MetaTensor
from monai.transforms import Invertd

from medssl.core.errors import ConfigError, DataError, error_behind
from medssl.data.datasets import DATASETS, Geometry, Target
from medssl.data.pipeline import LabelMap, Pipeline
from medssl.data.volumes import read_volume, write_nifti

KITS19_CODES = "IPL"  # slices first, from the head downwards
CT = replace(DATASETS["kits19"], target=Target({1: 1, 2: 1}, {1: "kidney"}))
MR = replace(DATASETS["hippocampus"], target=Target({1: 1, 2: 2}, {1: "anterior", 2: "posterior"}))


def ball(shape: tuple[int, int, int], centre: tuple[float, float, float], radius: float) -> np.ndarray:
    """Smooth Hounsfield values that fall from 250 at the centre to 75, the window's middle, at the radius."""
    grid = np.meshgrid(*(np.arange(n) for n in shape), indexing="ij")
    distance = np.sqrt(sum((g - c) ** 2 for g, c in zip(grid, centre, strict=True)))
    return np.clip(250 - 175 * distance / radius, -100, 250)


def store(folder: Path, image: np.ndarray, label: np.ndarray, codes: str = "RAS", name: str = "a") -> dict[str, Any]:
    """The case of an RAS image and label, written with the axes `codes` says; voxels are 1 x 1.5 x 3 mm."""
    turn = nib.orientations.ornt_transform(nib.orientations.axcodes2ornt("RAS"), nib.orientations.axcodes2ornt(codes))
    case: dict[str, Any] = {"id": name, "patient": name}
    for key, array in (("image", image), ("label", label)):
        stored = nib.Nifti1Image(array.astype(np.int16), np.diag([1.0, 1.5, 3.0, 1.0])).as_reoriented(turn)
        case[key] = str(folder / f"{name}_{key}.nii.gz")
        write_nifti(case[key], np.asarray(stored.dataobj), stored.affine, np.int16)
    return case


def small(facts: Any = CT, **changes: Any) -> Pipeline:
    """A pipeline that keeps a small scan as it is, unless sizes are given."""
    geometry = {"slice_size": None, "region_size": None, "patch_size": (8, 8, 4)}
    sizes = {key: changes.pop(key) for key in tuple(changes) if key in geometry}
    return Pipeline(replace(facts, geometry=Geometry(**{**geometry, **sizes})), **changes)


@pytest.fixture
def case(tmp_path: Path) -> dict[str, Any]:
    """A (40, 36, 10) scan of a ball off the middle; the label is where the image is above 75."""
    image = ball((40, 36, 10), (26.3, 12.6, 4), 8)
    return store(tmp_path, image, np.where(image > 75, 1, 0))


def test_window_becomes_minus_one_to_one_and_clips(tmp_path):
    values = np.array([-1000, -100, 75, 250, 3000]).reshape(5, 1, 1)
    image = small(patch_size=(5, 1, 1)).preprocessing()(store(tmp_path, values, values * 0))["image"]
    np.testing.assert_allclose(image.flatten(), [-1, -1, 0, 1, 1], atol=1e-6)


def test_mr_is_scaled_between_its_own_percentiles(tmp_path):
    values = np.random.default_rng(0).integers(0, 2000, (10, 10, 10))
    values[0, 0, 0] = 30000  # one bright vessel
    low, high = np.percentile(values, [0.5, 99.5])
    expected = np.clip(2 * (values - low) / (high - low) - 1, -1, 1)
    image = small(MR).preprocessing()(store(tmp_path, values, values * 0))["image"]
    np.testing.assert_allclose(image[0], expected, atol=1e-4)


def test_mr_of_one_value_stays_finite(tmp_path):
    image = small(MR).preprocessing()(store(tmp_path, np.full((8, 8, 4), 7), np.zeros((8, 8, 4))))["image"]
    assert torch.isfinite(image).all()


@pytest.mark.parametrize("codes", ["LPS", "LAS", "ASR", KITS19_CODES])
@pytest.mark.parametrize("sizes", [{}, {"slice_size": (32, 32), "region_size": (20, 20)}], ids=["as is", "resized"])
def test_storage_order_does_not_change_what_the_network_sees(codes, sizes, tmp_path):
    image = ball((40, 36, 10), (26.3, 12.6, 4), 8) + np.arange(10) * 5
    label = np.where(image > 75, 1, 0)
    expected = small(**sizes).preprocessing()(store(tmp_path, image, label, "RAS"))
    found = small(**sizes).preprocessing()(store(tmp_path, image, label, codes, "turned"))
    assert found["image"].shape == expected["image"].shape
    torch.testing.assert_close(found["image"].as_tensor(), expected["image"].as_tensor(), atol=1e-5, rtol=0)
    assert torch.equal(found["label"].as_tensor(), expected["label"].as_tensor())


@pytest.mark.parametrize(("codes", "depth"), [("RAS", 6), (KITS19_CODES, 40)])
def test_thesis_sizes(codes, depth, tmp_path):
    image = np.full((512, 512, depth), -1000)
    image[200:400, 250:400, 1:5] = 100
    prepared = Pipeline(CT).preprocessing(training=True)(store(tmp_path, image, image > 0, codes))
    assert prepared["image"].shape == prepared["label"].shape == (1, 160, 160, max(depth, 32))
    assert prepared["label"].sum() == (100 * 75 * 4)
    patch = Pipeline(CT).augmentation()(prepared)
    assert patch["image"].shape == patch["label"].shape == (1, 128, 128, 32)


def test_small_scan_is_padded_with_air_and_background(tmp_path):
    case = store(tmp_path, np.full((6, 4, 2), 250), np.ones((6, 4, 2)))
    prepared = small(patch_size=(8, 8, 4)).preprocessing()(case)
    assert prepared["image"].shape == (1, 8, 8, 4)
    assert sorted(prepared["image"].unique().tolist()) == [-1, 1]
    assert (prepared["image"] == 1).sum() == prepared["label"].sum() == 6 * 4 * 2


def test_sizes_given_to_the_pipeline_replace_the_data_sets():
    pipeline = Pipeline(CT, region_size=[96, 96], patch_size=[64, 64, 16])
    assert pipeline.geometry == Geometry((256, 256), (96, 96), (64, 64, 16))
    assert Pipeline(CT).geometry == Geometry((256, 256), (160, 160), (128, 128, 32))


def test_label_ids_become_classes_and_unnamed_ones_background():
    label = torch.tensor([0, 1, 2, 3, 255], dtype=torch.int16)
    assert LabelMap({2: 1, 255: 2})(label).tolist() == [0, 0, 1, 0, 2]


def test_resizing_leaves_label_and_image_in_the_same_place(case):
    prepared = small(slice_size=(31, 29)).preprocessing()(case)
    middles = [mask[0].nonzero().double().mean(0) for mask in (prepared["image"] > 0, prepared["label"] > 0)]
    torch.testing.assert_close(middles[0], middles[1], atol=0.15, rtol=0)  # MONAI's "nearest" is off by 0.4
    assert set(prepared["label"].unique().tolist()) == {0, 1}


USES = {
    "unlabelled": {"with_label": False, "training": True},
    "validation": {"with_label": True, "training": False},
    "test": {"with_label": False, "training": False},
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("paper_crop", [False, True])
def test_label_of_a_case_that_is_not_labelled_moves_the_region_only_with_paper_crop(paper_crop, use, case, tmp_path):
    transform = small(region_size=(16, 16), paper_crop=paper_crop).preprocessing(**use)
    before = torch.as_tensor(transform(case)["image"])
    moved = np.zeros((40, 36, 10))
    moved[2:4, 30:33, 0] = 1
    write_nifti(case["label"], moved, read_volume(case["image"]).affine, np.uint8)
    after = torch.as_tensor(transform(case)["image"])
    assert (before.shape == after.shape and torch.equal(before, after)) is not paper_crop


def test_labelled_training_case_is_cropped_around_its_structures_with_all_slices(case):
    label = np.zeros((40, 36, 10))
    label[4:8, 28:32, 3:5] = 1
    write_nifti(case["label"], label, read_volume(case["image"]).affine, np.uint8)
    prepared = small(region_size=(16, 16)).preprocessing(training=True)(case)
    assert prepared["label"].shape == (1, 16, 16, 10) and prepared["label"].sum() == 4 * 4 * 2


def test_prediction_sees_whole_slices(case):
    assert small(region_size=(16, 16)).preprocessing(with_label=False)(case)["image"].shape == (1, 40, 36, 10)


def test_label_file_is_not_opened_unless_it_is_needed(case):
    case["label"] = "/nowhere/label.nii.gz"
    prepared = small(region_size=(16, 16)).preprocessing(with_label=False)(case)
    assert set(prepared) == {"image", "id"}
    small(paper_crop=True).preprocessing(with_label=False)(case)  # no region, so no need


def test_paper_crop_centres_the_region_on_the_label_and_keeps_it_from_unlabelled_batches(case):
    label = np.zeros((40, 36, 10))
    label[4:8, 28:32, 3:5] = 1
    write_nifti(case["label"], label, read_volume(case["image"]).affine, np.uint8)
    pipeline = small(region_size=(16, 16), paper_crop=True)
    prepared = pipeline.preprocessing()(case)
    assert prepared["label"].shape == (1, 16, 16, 10)
    assert prepared["label"].sum() == 4 * 4 * 2
    assert set(pipeline.preprocessing(with_label=False)(case)) == {"image", "id"}


@pytest.mark.parametrize(("paper_crop", "with_label"), [(True, False), (False, True)])
def test_missing_label_is_an_error_that_names_the_scan(paper_crop, with_label, case):
    del case["label"]
    transform = small(region_size=(16, 16), paper_crop=paper_crop).preprocessing(with_label=with_label)
    with pytest.raises(Exception, match="") as caught:
        transform(case)
    found = error_behind(caught.value)
    assert isinstance(found, DataError)
    assert f"{case['image']}: has no label" in str(found)


def test_training_gets_plain_tensors_and_prediction_keeps_the_history(case):
    training, prediction = (small().preprocessing(training=flag)(case) for flag in (True, False))
    assert type(training["image"]) is type(training["label"]) is torch.Tensor
    assert (training["image"].dtype, training["label"].dtype) == (torch.float32, torch.uint8)
    assert isinstance(prediction["image"], MetaTensor)
    assert prediction["image"].applied_operations


def invert(pipeline: Pipeline, case: dict[str, Any], nearest: bool = True) -> np.ndarray:
    """The label after preprocessing, brought back as predictions are: by undoing what was done to the image."""
    label = pipeline.preprocessing()(case)["label"].as_tensor()
    transform = pipeline.preprocessing(with_label=False)
    prepared = transform(case)
    image = prepared["image"]
    prepared["maps"] = MetaTensor(label.float(), meta=image.meta, applied_operations=image.applied_operations)
    back = Invertd("maps", transform, orig_keys="image", nearest_interp=nearest, to_tensor=True)(prepared)["maps"]
    np.testing.assert_allclose(back.affine, read_volume(case["image"]).affine, atol=1e-5)
    return back[0].numpy()


@pytest.mark.parametrize("codes", ["RAS", "LPS", KITS19_CODES])
@pytest.mark.parametrize(
    "sizes",
    [
        {},
        {"region_size": (24, 24)},
        {"patch_size": (48, 48, 16)},
        {"region_size": (24, 24), "patch_size": (32, 20, 12)},
    ],
    ids=["as is", "cropped", "padded", "cropped and padded"],
)
def test_label_comes_back_exactly_where_nothing_is_resized(codes, sizes, tmp_path):
    image = ball((40, 36, 10), (26.3, 12.6, 4), 8)
    case = store(tmp_path, image, np.where(image > 75, 1, 0), codes)
    np.testing.assert_array_equal(invert(small(**sizes), case), read_volume(case["label"]).array)


@pytest.mark.parametrize("codes", ["RAS", KITS19_CODES])
@pytest.mark.parametrize(
    ("slice_size", "voxels"),
    [((32, 32), 0.25), ((64, 64), 0.25), ((20, 18), 0.5)],  # halved, the nearest voxel lies half a voxel beside
)
def test_label_comes_back_in_place_after_resizing(slice_size, voxels, codes, tmp_path):
    image = ball((40, 36, 10), (24.3, 16.6, 4), 12)
    case = store(tmp_path, image, np.where(image > 75, 1, 0), codes)
    source = read_volume(case["label"]).array
    back = invert(small(slice_size=slice_size, region_size=slice_size), case, nearest=False) > 0.5
    assert back.shape == source.shape
    assert 2 * (back * source).sum() / (back.sum() + source.sum()) > 0.95
    middles = [np.argwhere(mask).mean(0) for mask in (back, source)]
    np.testing.assert_allclose(middles[0], middles[1], atol=voxels)


def augment(pipeline: Pipeline, prepared: dict[str, Any], seed: int) -> dict[str, Any]:
    return pipeline.augmentation().set_random_state(seed=seed)(prepared)


def test_jitter_changes_the_image_only_and_keeps_the_order_of_its_values(case):
    pipeline = small(patch_size=(40, 36, 10), rotation_degrees=0, flip_probability=0)
    prepared = pipeline.preprocessing(training=True)(case)
    images = []
    for seed in range(4):
        found = augment(pipeline, prepared, seed)
        assert torch.equal(found["label"], prepared["label"])
        slope, _ = np.polyfit(prepared["image"].flatten(), found["image"].flatten(), 1)
        assert 0.6 <= slope <= 1.4
        assert np.corrcoef(prepared["image"].flatten(), found["image"].flatten())[0, 1] == pytest.approx(1, abs=1e-3)
        images.append(found["image"])
    assert not torch.allclose(images[0], images[1])


def test_flip_turns_left_and_right_of_image_and_label(case):
    pipeline = small(patch_size=(40, 36, 10), jitter=0, rotation_degrees=0, flip_probability=1)
    prepared = pipeline.preprocessing(training=True)(case)
    found = augment(pipeline, prepared, 0)
    torch.testing.assert_close(found["image"], prepared["image"].flip(1), atol=1e-4, rtol=0)
    assert torch.equal(found["label"], prepared["label"].flip(1))


def test_rotation_and_crop_move_image_and_label_together(case):
    pipeline = small(patch_size=(32, 32, 8), jitter=0)
    prepared = pipeline.preprocessing(training=True)(case)
    places = set()
    for seed in range(12):
        found = augment(pipeline, prepared, seed)
        agreement = ((found["image"] > 0) == (found["label"] > 0)).float().mean()
        assert agreement > 0.985
        places.add(tuple(found["label"][0].nonzero().float().mean(0).round(decimals=1).tolist()))
    assert len(places) > 6


def test_rotation_turns_slices_in_their_plane_and_makes_no_new_label_ids(tmp_path):
    label = np.zeros((32, 32, 6))
    label[8:24, 10:20, 2], label[8:24, 10:20, 4] = 1, 2
    pipeline = small(MR, patch_size=(32, 32, 6), rotation_degrees=10, flip_probability=0)
    prepared = pipeline.preprocessing(training=True)(store(tmp_path, label * 100, label))
    turned = 0
    for seed in range(12):
        found = augment(pipeline, prepared, seed)["label"]
        assert found.dtype == torch.uint8
        assert [sorted(found[0, ..., z].unique().tolist()) for z in range(6)] == [[0], [0], [0, 1], [0], [0, 2], [0]]
        turned += not torch.equal(found, prepared["label"])
    assert 2 <= turned <= 10  # half of the time


def test_augmentation_gives_plain_tensors_of_one_type_and_leaves_the_cached_ones_alone(case):
    pipeline = small(patch_size=(32, 32, 8))
    prepared = pipeline.preprocessing(training=True)(case)
    before = {key: prepared[key].clone() for key in ("image", "label")}
    for seed in range(8):
        found = augment(pipeline, prepared, seed)
        assert {type(found[key]) for key in before} == {torch.Tensor}
        assert (found["image"].dtype, found["label"].dtype) == (torch.float32, torch.uint8)
    assert all(torch.equal(prepared[key], before[key]) for key in before)


def test_unlabelled_cases_are_augmented_without_a_label(case):
    pipeline = small(patch_size=(32, 32, 8))
    prepared = pipeline.preprocessing(with_label=False, training=True)(case)
    found = pipeline.augmentation(with_label=False)(prepared)
    assert found["image"].shape == (1, 32, 32, 8)
    assert "label" not in found


USES_OF_CENTRE = {"labelled": {"training": True}, "unlabelled": {"training": True, "with_label": False}, "test": {}}


@pytest.mark.parametrize("use", USES_OF_CENTRE.values(), ids=USES_OF_CENTRE)
def test_centre_is_the_literal_middle_of_every_slice_in_training_and_test(use, case):
    pipeline = small(slice_size=(32, 32), region_size=(20, 16), region="centre")
    whole = small(slice_size=(32, 32)).preprocessing(with_label=False)(case)["image"]
    found = torch.as_tensor(pipeline.preprocessing(**use)(case)["image"])
    assert torch.equal(found, torch.as_tensor(whole)[:, 6:26, 8:24])


def test_region_at_the_centre_is_160_of_256_from_the_48th_voxel_on(tmp_path):
    rows, columns, _ = np.indices((256, 256, 2))
    scan = store(tmp_path, rows * 0.5 + columns * 0.1 - 60, np.zeros((256, 256, 2)))
    pipeline = Pipeline(CT, region="centre")
    assert pipeline.preprocessing()(scan)["image"].shape == (1, 160, 160, 32)
    found = Pipeline(CT, region="centre", patch_size=(128, 128, 2)).preprocessing()(scan)["image"]
    whole = Pipeline(CT, patch_size=(128, 128, 2)).preprocessing()(scan)["image"]
    assert torch.equal(torch.as_tensor(found), torch.as_tensor(whole)[:, 48:208, 48:208])


def test_crop_to_the_centre_is_undone_with_nothing_outside(case):
    pipeline = small(region_size=(20, 16), region="centre")
    preprocessing = pipeline.preprocessing(with_label=False)
    prepared = preprocessing(case)
    ones = MetaTensor(
        torch.ones_like(prepared["image"]).as_tensor(),
        meta=prepared["image"].meta,
        applied_operations=prepared["image"].applied_operations,
    )
    back = Invertd("maps", preprocessing, orig_keys="image", nearest_interp=True)({**prepared, "maps": ones})["maps"]
    assert back.shape == (1, 40, 36, 10) and back.sum() == 20 * 16 * 10 and back[0, 10:30, 10:26].all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"region": "corner", "region_size": (8, 8)}, "region 'corner' is unknown"),
        ({"region": "centre"}, "no region_size.*--region_size"),
        ({"region": "centre", "region_size": (8, 8), "paper_crop": True}, "one place"),
    ],
)
def test_regions_that_mean_nothing_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        small(**changes)
