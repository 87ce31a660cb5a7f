"""What a step sees depends on seed, epoch and position alone; deterministic work is done once."""

import os
import pickle
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import ignite.distributed as idist
import monai.transforms as mt
import numpy as np
import pytest
import torch

from medssl.core.errors import ConfigError
from medssl.core.progress import Work
from medssl.data import sampling
from medssl.data.datasets import DATASETS, Geometry, Target
from medssl.data.pipeline import Pipeline
from medssl.data.sampling import (
    AugmentedDataset,
    Draw,
    EpochSampler,
    cache_cases,
    content_key,
    make_loader,
    thesis_steps_per_epoch,
)
from medssl.data.volumes import write_nifti

FACTS = replace(
    DATASETS["kits19"],
    target=Target({1: 1, 2: 1}, {1: "kidney"}),
    geometry=Geometry(slice_size=(20, 20), region_size=(16, 16), patch_size=(12, 12, 4)),
)
CALLS: list[str] = []


class CountCalls(mt.Transform):
    """Passes a case on and notes that it came by."""

    def __call__(self, case: dict[str, Any]) -> dict[str, Any]:
        CALLS.append(case["id"])
        return case


@pytest.fixture(autouse=True)
def forget_calls() -> None:
    CALLS.clear()


@pytest.fixture
def cases(tmp_path: Path) -> list[dict[str, Any]]:
    """Six small CT cases with random voxels."""
    rng = np.random.default_rng(0)
    found = []
    for index in range(6):
        case = {
            "id": f"c{index}",
            "image": str(tmp_path / f"i{index}.nii.gz"),
            "label": str(tmp_path / f"l{index}.nii"),
        }
        write_nifti(case["image"], rng.integers(-200, 300, (24, 22, 6)), np.eye(4), np.int16)
        write_nifti(case["label"], rng.integers(0, 3, (24, 22, 6)), np.eye(4), np.uint8)
        found.append(case)
    return found


def draws(epoch: int = 0, **arguments: Any) -> list[Draw]:
    sampler = EpochSampler(**{"num_cases": 5, "batch_size": 4, "steps": 3, **arguments})
    sampler.set_epoch(epoch)
    assert len(sampler) == len(list(sampler))
    return list(sampler)


def test_epoch_has_the_same_draws_every_time_and_others_than_the_next():
    assert draws(epoch=3) == draws(epoch=3)
    assert draws(epoch=3) != draws(epoch=4)
    assert draws(seed=1) != draws(seed=2)
    assert len({draw.seed for epoch in range(10) for draw in draws(epoch)}) == 120


@pytest.mark.parametrize(("num_cases", "steps"), [(5, 3), (4, 1), (1, 2), (30, 2)])
def test_every_case_comes_once_a_pass(num_cases, steps):
    order = [draw.case for draw in draws(num_cases=num_cases, steps=steps)]
    assert len(order) == 4 * steps
    for start in range(0, len(order), num_cases):
        part = order[start : start + num_cases]
        assert len(set(part)) == len(part)


@pytest.mark.parametrize("world_size", [2, 4])
def test_processes_see_together_what_one_would_see_alone(world_size):
    alone = draws(epoch=2)
    own = 4 // world_size
    ranks = [draws(epoch=2, batch_size=own, rank=rank, world_size=world_size) for rank in range(world_size)]
    for step in range(3):
        together = [draw for rank in ranks for draw in rank[step * own : (step + 1) * own]]
        assert sorted(together) == sorted(alone[step * 4 : (step + 1) * 4])


def loader_draws(monkeypatch: pytest.MonkeyPatch, rank: int, world_size: int, batch_size: int = 4) -> list[list[Draw]]:
    monkeypatch.setattr(idist, "get_rank", lambda: rank)
    monkeypatch.setattr(idist, "get_world_size", lambda: world_size)
    data = AugmentedDataset([{"image": torch.zeros(1)}] * 5, mt.Compose([]))
    return list(make_loader(data, batch_size, steps=3).batch_sampler)


def test_batch_size_is_that_of_all_processes(monkeypatch):
    alone, ranks = loader_draws(monkeypatch, 0, 1), [loader_draws(monkeypatch, rank, 2) for rank in (0, 1)]
    assert [sorted(a + b) for a, b in zip(*ranks, strict=True)] == [sorted(batch) for batch in alone]
    with pytest.raises(ConfigError, match="batch_size 5 cannot be divided among 2"):
        loader_draws(monkeypatch, 0, 2, batch_size=5)


def test_augmentation_depends_on_the_draw_alone(cases):
    pipeline = Pipeline(FACTS)
    cached = cache_cases(cases, pipeline.preprocessing(training=True))
    first, second = (AugmentedDataset(cached, pipeline.augmentation()) for _ in range(2))
    wanted = [Draw(2, 11), Draw(0, 12), Draw(2, 13), Draw(5, 11)]
    forwards = {draw: first[draw]["image"] for draw in wanted}
    backwards = {draw: second[draw]["image"] for draw in wanted[::-1]}
    assert all(torch.equal(forwards[draw], backwards[draw]) for draw in wanted)
    assert not torch.equal(forwards[Draw(2, 11)], forwards[Draw(2, 13)])
    assert torch.equal(first[3]["image"], first[Draw(3, 0)]["image"])


def test_number_of_workers_changes_nothing(cases):
    pipeline = Pipeline(FACTS)
    cached = cache_cases(cases, pipeline.preprocessing(training=True))
    seen = []
    for workers in (0, 2):
        loader = make_loader(AugmentedDataset(cached, pipeline.augmentation()), 3, steps=2, num_workers=workers)
        epochs = []
        for epoch in (0, 1):
            loader.sampler.set_epoch(epoch)
            epochs += list(loader)
        seen.append(epochs)
    assert len(seen[0]) == len(seen[1]) == 4
    for alone, parallel in zip(*seen, strict=True):
        assert alone["id"] == parallel["id"]
        assert torch.equal(alone["image"], parallel["image"])
        assert torch.equal(alone["label"], parallel["label"])
    assert seen[0][0]["image"].shape == (3, 1, 12, 12, 4)
    assert not torch.equal(seen[0][0]["image"], seen[0][2]["image"])


@pytest.mark.parametrize(("cache", "computed"), [("memory", 6), ("disk", 6), ("none", 18)])
def test_deterministic_part_is_computed_once(cache, computed, cases, tmp_path):
    pipeline = Pipeline(FACTS)
    transform = mt.Compose([CountCalls(), pipeline.preprocessing(training=True)])
    data = AugmentedDataset(cache_cases(cases, transform, cache, str(tmp_path / "cache")), pipeline.augmentation())
    passes = [[data[Draw(index, epoch)]["image"] for index in range(6)] for epoch in (0, 1, 0)]
    assert len(CALLS) == computed
    assert all(torch.equal(a, b) for a, b in zip(passes[0], passes[2], strict=True))


def test_all_caches_give_the_same_samples(cases, tmp_path):
    transform = Pipeline(FACTS).preprocessing(training=True)
    found = [
        cache_cases(cases, transform, cache, str(tmp_path / "cache")) for cache in ("memory", "none", "disk", "disk")
    ]
    for index in range(6):
        for key in ("image", "label"):
            values = [data[index][key] for data in found]
            assert all(torch.equal(value, values[0]) and value.dtype == values[0].dtype for value in values)


def test_disk_cache_is_used_by_the_next_run_in_another_role(cases, tmp_path):
    def run(role: str) -> None:
        transform = mt.Compose([CountCalls(), Pipeline(FACTS).preprocessing(training=True)])
        data = cache_cases([{**case, "role": role} for case in cases], transform, "disk", str(tmp_path / "cache"))
        assert [data[index]["id"] for index in range(6)] == [case["id"] for case in cases]

    run("labelled")
    run("unlabelled")
    assert len(CALLS) == 6


@pytest.mark.parametrize(
    "changed",
    [
        Pipeline(replace(FACTS, window=(-50.0, 250.0))),
        Pipeline(replace(FACTS, target=Target({2: 1}, {1: "tumour"}))),
        Pipeline(FACTS, slice_size=(22, 22)),
        Pipeline(FACTS, region_size=(14, 14)),
        Pipeline(FACTS, patch_size=(18, 18, 4)),
        Pipeline(FACTS, paper_crop=True),
    ],
    ids=["window", "target", "slices", "region", "patch", "paper_crop"],
)
def test_disk_cache_is_not_used_after_a_change_of_the_transform(changed, cases, tmp_path):
    for pipeline in (Pipeline(FACTS), changed, Pipeline(FACTS)):
        cached = cache_cases(cases[:2], pipeline.preprocessing(training=True), "disk", str(tmp_path / "cache"))
        fresh = cache_cases(cases[:2], pipeline.preprocessing(training=True), "none")
        for index in (0, 1):
            for key in ("image", "label"):
                assert torch.equal(cached[index][key], fresh[index][key])
    assert len(list((tmp_path / "cache").iterdir())) == 4  # two cases, two transforms


def test_disk_cache_is_not_used_after_a_change_of_a_file(cases, tmp_path):
    transform = Pipeline(FACTS).preprocessing(training=True)
    before = cache_cases(cases, transform, "disk", str(tmp_path / "cache"))[0]["label"]
    write_nifti(cases[0]["label"], np.zeros((24, 22, 6)), np.eye(4), np.uint8)
    after = cache_cases(cases, transform, "disk", str(tmp_path / "cache"))[0]["label"]
    assert before.any()
    assert not after.any()


def test_key_of_a_case_follows_every_file_of_a_dicom_series(write_series):
    folder = write_series(2)
    case = {"id": "a", "image": str(folder)}
    before = content_key(case)
    assert content_key({**case, "role": "test", "patient": "p"}) == before
    os.utime(folder / "002.dcm", ns=(0, 0))
    assert content_key(case) != before


@pytest.mark.parametrize(("cache", "message"), [("disk", "needs a cache_dir"), ("tape", "memory, disk or none")])
def test_impossible_caches_are_refused(cache, message):
    with pytest.raises(ConfigError, match=message):
        cache_cases([], mt.Compose([]), cache)


@pytest.mark.parametrize(
    ("labelled", "unlabelled", "batch_size", "steps"),
    [(16, 64, 4, 36), (8, 72, 4, 38), (16, 144, 4, 76), (10, 0, 4, 2), (1, 0, 4, 1)],
)
def test_steps_per_epoch_are_counted_as_the_authors_do(labelled, unlabelled, batch_size, steps):
    assert thesis_steps_per_epoch(labelled, unlabelled, batch_size) == steps


def test_filling_the_cache_in_memory_counts_every_case(monkeypatch):
    works = []

    @contextmanager
    def recorded(title, total, unit):
        works.append(Work(title, total, unit))
        yield works[-1]

    monkeypatch.setattr(sampling, "work", recorded)
    cached = cache_cases([{"id": name} for name in "abc"], mt.Compose([]))
    assert [work.text() for work in works] == ["preparing cases: 3 of 3 cases"]
    assert [case["id"] for case in cached] == ["a", "b", "c"]
    assert pickle.loads(pickle.dumps(cached))[1]["id"] == "b", "workers get a copy"
