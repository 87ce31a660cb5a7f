"""The facts of every named data set, read from small folders that lie on disk as the real ones do."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813

from medssl.core.errors import ConfigError, DataError
from medssl.data.datasets import DATASETS, dataset_facts, open_dataset
from medssl.data.volumes import write_nifti

SOFT_TISSUE = (-100.0, 250.0)


def write_pair(image: Path, label: Path, ids: tuple[int, ...] = (0, 1, 2)) -> None:
    values = np.resize(np.array(ids), (4, 5, 3))
    write_nifti(image, np.zeros((4, 5, 3)), np.eye(4), np.int16)
    write_nifti(label, values, np.eye(4), np.uint8)


def make_kits19(root: Path) -> None:
    for index in range(3):
        folder = root / f"case_{index:05d}"
        write_pair(folder / "imaging.nii.gz", folder / "segmentation.nii.gz")


def make_left_atrium_h5(root: Path) -> None:
    for name in ("AAA", "BBB"):
        folder = root / "2018LA_Seg_Training Set" / name
        folder.mkdir(parents=True)
        with h5py.File(folder / "mri_norm2.h5", "w") as file:
            file["image"], file["label"] = np.zeros((4, 5, 3), np.float32), np.ones((4, 5, 3), np.uint8)


def make_left_atrium_raw(root: Path) -> None:
    for name in ("AAA", "BBB"):
        folder = root / "Training Set" / name
        folder.mkdir(parents=True)
        sitk.WriteImage(sitk.GetImageFromArray(np.zeros((3, 5, 4), np.uint8)), str(folder / "lgemri.nrrd"))
        sitk.WriteImage(sitk.GetImageFromArray(np.full((3, 5, 4), 255, np.uint8)), str(folder / "laendo.nrrd"))


def make_decathlon(root: Path) -> None:
    for name in ("scan_001", "scan_010"):
        write_pair(root / "imagesTr" / f"{name}.nii.gz", root / "labelsTr" / f"{name}.nii.gz")
    (root / "imagesTr" / "._scan_001.nii.gz").write_bytes(b"a Mac's resource fork")


def make_phantom(root: Path) -> None:
    write_pair(root / "images" / "phantom_000.nii.gz", root / "labels" / "phantom_000.nii.gz")
    (root / "phantom.json").write_text(json.dumps({"modality": "ct"}))


def make_folder(root: Path) -> None:
    write_pair(root / "images" / "a.nii.gz", root / "labels" / "a.nii.gz", ids=(0, 3, 7))


MAKERS = {
    "kits19": make_kits19,
    "left_atrium": make_left_atrium_h5,
    "liver": make_decathlon,
    "hippocampus": make_decathlon,
    "phantom": make_phantom,
    "folder": make_folder,
}
# name: (test cases, presets, window, epochs, slice size, region, patch, structures by default)
THESIS_SIZES = ((256, 256), (160, 160), (128, 128, 32))
FACTS = {
    "kits19": (50, ((16, 144), (4, 156)), SOFT_TISSUE, 120, *THESIS_SIZES, {1: "kidney and tumour"}),
    "left_atrium": (20, ((16, 64), (8, 72)), None, 240, None, None, (128, 128, 32), {1: "left atrium"}),
    "liver": (31, ((5, 95),), SOFT_TISSUE, 120, *THESIS_SIZES, {1: "liver"}),
    "hippocampus": (0.3, (), None, 120, None, None, (48, 64, 32), {1: "anterior", 2: "posterior"}),
    "phantom": (0.3, (), SOFT_TISSUE, 120, None, None, (64, 64, 16), {1: "kidney"}),
    "folder": (0.3, (), None, 120, None, None, (16, 16, 3), {1: "label 3", 2: "label 7"}),
}


def test_every_data_set_is_tested():
    assert set(DATASETS) == set(MAKERS) == set(FACTS)


@pytest.mark.parametrize("name", FACTS)
def test_data_set_has_the_facts_of_its_publication(name, tmp_path):
    MAKERS[name](tmp_path)
    source = open_dataset(name, tmp_path)
    facts, size = source.facts, source.facts.geometry
    found = (facts.test_cases, facts.presets, facts.window, facts.epochs)
    sizes = (size.slice_size, size.region_size, size.patch_size)
    assert (*found, *sizes, dict(facts.target.structures)) == FACTS[name]
    assert facts.num_classes == len(facts.target.structures) + 1
    assert len(source.cases) >= 1
    assert all(case["label"] != case["image"] for case in source.cases)


@pytest.mark.parametrize(
    ("name", "total"), [("kits19", 160 + 50), ("left_atrium", 80 + 20), ("liver", 100 + 31)], ids=str
)
def test_presets_and_test_cases_add_up_to_the_published_number(name, total):
    facts = dataset_facts(name)
    assert {sum(preset) + facts.test_cases for preset in facts.presets} == {total}


@pytest.mark.parametrize(
    ("name", "target", "label_map"),
    [
        ("kits19", None, {1: 1, 2: 1}),
        ("kits19", "tumour", {2: 1}),
        ("kits19", "separate", {1: 1, 2: 2}),
        ("liver", None, {1: 1, 2: 1}),
        ("liver", "tumour", {2: 1}),
        ("hippocampus", "whole", {1: 1, 2: 1}),
        ("phantom", None, {1: 1, 2: 1}),
        ("phantom", "separate", {1: 1, 2: 2}),
        ("folder", None, {3: 1, 7: 2}),
    ],
)
def test_target_maps_label_ids_to_classes(name, target, label_map, tmp_path):
    MAKERS[name](tmp_path)
    facts = open_dataset(name, tmp_path, target=target).facts
    assert dict(facts.target.label_map) == label_map
    assert set(label_map) <= set(facts.label_ids)


def test_choosing_a_target_leaves_the_ids_a_file_may_hold(tmp_path):
    make_kits19(tmp_path)
    assert open_dataset("kits19", tmp_path, target="tumour").facts.label_ids == [0, 1, 2]


def test_left_atrium_of_the_challenge_is_resized_and_its_label_255_is_the_atrium(tmp_path):
    make_left_atrium_raw(tmp_path)
    source = open_dataset("left_atrium", tmp_path)
    assert [case["id"] for case in source.cases] == ["AAA", "BBB"]
    assert source.cases[0]["image"].endswith("AAA/lgemri.nrrd")
    assert source.cases[0]["label"].endswith("AAA/laendo.nrrd")
    assert source.facts.geometry.region_size == (160, 160)
    assert source.facts.target.label_map[255] == 1


def test_left_atrium_of_the_literature_is_read_through_its_keys(tmp_path):
    make_left_atrium_h5(tmp_path)
    case = open_dataset("left_atrium", tmp_path).cases[0]
    assert case["id"] == case["patient"] == "AAA"
    assert case["image"].endswith("AAA/mri_norm2.h5::image")
    assert case["label"].endswith("AAA/mri_norm2.h5::label")


def test_phantoms_are_made_where_there_are_none(tmp_path, monkeypatch):
    monkeypatch.setattr("medssl.data.datasets.write_phantoms", make_phantom)
    assert [case["id"] for case in open_dataset("phantom", tmp_path / "new").cases] == ["phantom_000"]


def test_mr_phantoms_are_not_windowed_in_hounsfield_units(tmp_path):
    make_phantom(tmp_path)
    (tmp_path / "phantom.json").write_text(json.dumps({"modality": "mr"}))
    facts = open_dataset("phantom", tmp_path).facts
    assert (facts.modality, facts.window) == ("MR", None)


def test_window_replaces_the_data_sets(tmp_path):
    make_folder(tmp_path)
    assert open_dataset("folder", tmp_path, window=(-160, 240)).facts.window == (-160.0, 240.0)


@pytest.mark.parametrize("window", [(250, -100), (5, 5), (1, 2, 3)])
def test_impossible_window_is_refused_with_its_numbers(window, tmp_path):
    make_folder(tmp_path)
    with pytest.raises(ConfigError, match=str(window[1])):
        open_dataset("folder", tmp_path, window=window)


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(ConfigError, match=r"nosuch.*folder, hippocampus, kits19, left_atrium, liver, phantom"):
        dataset_facts("nosuch")


def test_unknown_target_lists_the_known_ones(tmp_path):
    make_kits19(tmp_path)
    with pytest.raises(ConfigError, match=r"spleen.*kits19.*kidney_and_tumour, tumour, separate"):
        open_dataset("kits19", tmp_path, target="spleen")


@pytest.mark.parametrize("name", sorted(set(DATASETS) - {"phantom"}))
def test_missing_folder_and_folder_of_something_else_are_named(name, tmp_path):
    with pytest.raises(DataError, match=r"missing: no such folder.*--dataset_dir"):
        open_dataset(name, tmp_path / "missing")
    (tmp_path / "notes.txt").write_text("no scan")
    with pytest.raises(DataError, match=f"{tmp_path}.*no scans found.*Expected"):
        open_dataset(name, tmp_path)


def test_only_decathlon_tasks_can_be_fetched(tmp_path):
    with pytest.raises(ConfigError, match="liver and hippocampus"):
        open_dataset("kits19", tmp_path, download=True)


def test_a_task_that_is_there_is_not_fetched_again(tmp_path):
    make_decathlon(tmp_path / "Task03_Liver")
    assert len(open_dataset("liver", tmp_path, download=True).cases) == 2
