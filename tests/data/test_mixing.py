"""Batches of fixed proportion; labels of unlabelled cases are never opened."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from medssl.core.errors import ConfigError
from medssl.data.datasets import DATASETS, Geometry, Target
from medssl.data.mixing import MixedDataset, TwoStreamSampler, make_mixed_loader, training_dataset
from medssl.data.pipeline import Pipeline
from medssl.data.sampling import EpochSampler
from medssl.data.split import Split
from medssl.data.volumes import LoadVolumed, write_nifti

FACTS = replace(
    DATASETS["kits19"],
    target=Target({1: 1, 2: 1}, {1: "kidney"}),
    geometry=Geometry(slice_size=None, region_size=(16, 16), patch_size=(12, 12, 4)),
)


@pytest.fixture
def split(tmp_path: Path) -> Split:
    """Two labelled cases and five unlabelled ones whose label files are no images."""
    rng, cases = np.random.default_rng(0), []
    for index in range(7):
        case: dict[str, Any] = {"id": f"c{index}", "patient": f"c{index}", "image": str(tmp_path / f"i{index}.nii.gz")}
        case |= {"label": str(tmp_path / f"l{index}.nii.gz"), "role": "labelled" if index < 2 else "unlabelled"}
        write_nifti(case["image"], rng.integers(-200, 300, (20, 18, 6)), np.eye(4), np.int16)
        if index < 2:
            write_nifti(case["label"], rng.integers(0, 3, (20, 18, 6)), np.eye(4), np.uint8)
        else:
            Path(case["label"]).write_text("not to be opened")
        cases.append(case)
    return Split(cases, {})


@pytest.fixture
def dataset(split: Split) -> MixedDataset:
    return training_dataset(split, Pipeline(FACTS))


def batches(dataset: MixedDataset, epoch: int = 1, **changes: Any) -> list[dict[str, Any]]:
    loader = make_mixed_loader(dataset, **{"batch_size": 5, "labelled_per_batch": 2, "steps": 4, "seed": 3, **changes})
    loader.sampler.set_epoch(epoch)
    return list(loader)


def test_every_batch_has_the_asked_numbers_and_unlabelled_cases_have_an_empty_label(dataset):
    found = batches(dataset)
    assert len(found) == 4
    for batch in found:
        assert batch["is_labelled"].tolist() == [True, True, False, False, False]
        assert batch["image"].shape == batch["label"].shape == (5, 1, 12, 12, 4)
        assert batch["label"].dtype == torch.uint8
        assert {int(case[1:]) < 2 for case in batch["id"][:2]} == {True}
        assert {int(case[1:]) < 2 for case in batch["id"][2:]} == {False}
        assert batch["label"][:2].any() and not batch["label"][2:].any()


def test_all_cases_are_seen_and_draws_follow_from_seed_and_epoch(dataset):
    first, again, later, other = batches(dataset), batches(dataset), batches(dataset, 2), batches(dataset, seed=4)
    assert {case for batch in first for case in batch["id"]} == {f"c{index}" for index in range(7)}
    assert all(torch.equal(a["image"], b["image"]) for a, b in zip(first, again, strict=True))
    for changed in (later, other):
        assert any(not torch.equal(a["image"], b["image"]) for a, b in zip(first, changed, strict=True))


@pytest.mark.parametrize("cache", ["memory", "disk"])
def test_files_are_read_and_prepared_once_whatever_the_number_of_epochs(cache, split, tmp_path, monkeypatch):
    read: list[str] = []
    load = LoadVolumed.__call__
    monkeypatch.setattr(LoadVolumed, "__call__", lambda self, data: read.append(data["id"]) or load(self, data))
    dataset = training_dataset(split, Pipeline(FACTS), cache, str(tmp_path / "cache"))
    for epoch in range(3):
        batches(dataset, epoch)
    assert sorted(read) == [f"c{index}" for index in range(7)]


def test_without_unlabelled_patches_only_labelled_ones_are_drawn(dataset):
    for batch in batches(dataset, with_unlabelled=False):
        assert batch["is_labelled"].tolist() == [True, True]


def test_two_processes_see_together_what_one_sees_alone():
    def draws(rank, world_size):
        labelled = EpochSampler(3, 2 // world_size, 3, 0, rank, world_size)
        unlabelled = EpochSampler(5, 4 // world_size, 3, 9, rank, world_size)
        return list(TwoStreamSampler(labelled, unlabelled, steps=3))

    alone, first, second = draws(0, 1), draws(0, 2), draws(1, 2)
    for step in range(3):
        together = first[3 * step : 3 * step + 3] + second[3 * step : 3 * step + 3]
        assert sorted(together) == sorted(alone[6 * step : 6 * step + 6])


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"labelled_per_batch": 5}, "0 unlabelled patches a batch"),
        ({"labelled_per_batch": 0}, "0 labelled patches a batch"),
        ({"labelled_per_batch": 6}, "-1 unlabelled patches a batch"),
    ],
)
def test_batches_without_one_of_the_kinds_are_refused(dataset, changes, part):
    with pytest.raises(ConfigError, match=part):
        batches(dataset, **changes)


def test_split_without_unlabelled_cases_is_refused_with_a_way_out(split):
    labelled = Split(split.role("labelled"), {})
    with pytest.raises(ConfigError, match=r"no unlabelled case.*mcdropout_unet3d"):
        batches(training_dataset(labelled, Pipeline(FACTS)))


def test_hidden_labels_are_those_of_unlabelled_cases_that_have_one(split):
    bare = Split([{k: v for k, v in case.items() if k != "label" or case["id"] != "c3"} for case in split.cases], {})
    assert [case["id"] for case in bare.with_hidden_labels(3)] == ["c2", "c4", "c5"]
    assert bare.with_hidden_labels(0) == []


def test_unlabelled_patches_have_the_same_views_as_labelled_ones(split, dataset):
    viewed = training_dataset(split, Pipeline(FACTS), views=("weak", "strong"))
    for batch, plain in zip(batches(viewed), batches(dataset), strict=True):
        assert batch["strong"].shape == (5, 1, 12, 12, 4)
        assert batch["crop_start"].shape == (5, 3)
        assert batch["is_flipped"].shape == batch["rotation_radians"].shape == (5,)
        assert set(plain) == {"image", "label", "id", "is_labelled"}
        assert torch.equal(batch["image"], plain["image"]) and torch.equal(batch["label"], plain["label"])
        assert batch["id"] == plain["id"]


def test_views_are_the_same_whatever_the_number_of_workers(split):
    viewed = training_dataset(split, Pipeline(FACTS), views="strong")
    for alone, shared in zip(batches(viewed), batches(viewed, num_workers=2), strict=True):
        for key in ("image", "strong", "crop_start", "is_flipped", "rotation_radians"):
            assert torch.equal(alone[key], shared[key])
