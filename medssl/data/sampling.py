"""Cached cases, seeded draws: what a step sees depends on seed, epoch and position only.

So a resumed run equals an unbroken one, and two processes see together what one would see alone.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import ignite.distributed as idist
import torch
from monai.data import CacheDataset, Dataset, PersistentDataset
from monai.data.utils import pickle_hashing
from monai.transforms import Compose
from torch.utils.data import DataLoader, Sampler

from medssl.core.errors import ConfigError
from medssl.core.progress import Work, work
from medssl.data.datasets import Case
from medssl.data.pipeline import Pipeline
from medssl.data.volumes import split_address


class Draw(NamedTuple):
    """Which case to take and the seed of its augmentation."""

    case: int
    seed: int


class AugmentedDataset(torch.utils.data.Dataset):
    """Augmented samples of cached cases: indexed by a `Draw`, or by a plain number (augmented with seed 0)."""

    def __init__(self, cached: Sequence[dict[str, Any]] | Dataset, augmentation: Compose) -> None:
        self.cached, self.augmentation = cached, augmentation

    def __len__(self) -> int:
        return len(self.cached)

    def __getitem__(self, draw: Draw | int) -> dict[str, Any]:
        index, seed = draw if isinstance(draw, tuple) else (draw, 0)
        self.augmentation.set_random_state(seed=seed)
        return self.augmentation(self.cached[index])


class EpochSampler(Sampler[Draw]):
    """The draws of one epoch: shuffled passes over all cases until `steps` global batches are full.

    Each of `world_size` processes gets every world_size-th draw, so that together they see the batches of one process.
    """

    def __init__(
        self, num_cases: int, batch_size: int, steps: int, seed: int = 0, rank: int = 0, world_size: int = 1
    ) -> None:
        self.num_cases, self.draws, self.seed = num_cases, batch_size * world_size * steps, seed
        self.rank, self.world_size, self.epoch = rank, world_size, 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return self.draws // self.world_size

    def __iter__(self) -> Iterator[Draw]:
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.epoch)
        passes = -(-self.draws // self.num_cases)
        order = torch.cat([torch.randperm(self.num_cases, generator=generator) for _ in range(passes)])
        seeds = torch.randint(2**31, (self.draws,), generator=generator)
        for position in range(self.rank, self.draws, self.world_size):
            yield Draw(int(order[position]), int(seeds[position]))


def cache_cases(cases: Sequence[Case], transform: Callable, cache: str = "memory", cache_dir: str = "") -> Dataset:
    """`cases` after the deterministic `transform`, computed once: kept in memory, on disk in `cache_dir`, or not.

    A case on disk is used again by any run, until its files or the transform's parameters change.
    """
    if cache == "memory":
        with work("preparing cases", len(cases), "cases") as piece:
            return _CountedCache(list(cases), transform, piece)
    if cache == "disk":
        if not cache_dir:
            raise ConfigError("cache 'disk' needs a cache_dir to write to.")
        return PersistentDataset(
            list(cases), transform, cache_dir, hash_func=content_key, hash_transform=pickle_hashing
        )
    if cache == "none":
        return Dataset(list(cases), transform)
    raise ConfigError(f"cache '{cache}' is unknown. Choose memory, disk or none.")


class _CountedCache(CacheDataset):
    """A cache in memory that counts each case as it is filled."""

    def __init__(self, cases: list[Case], transform: Callable, piece: Work) -> None:
        self.piece: Work | None = piece
        super().__init__(cases, transform, progress=False, copy_cache=False)
        self.piece = None  # what is done: loaders copy the cache into other processes

    def _load_cache_item(self, idx: int) -> Any:
        item = super()._load_cache_item(idx)
        if self.piece is not None:
            self.piece.advance()
        return item


def content_key(case: Case) -> bytes:
    """64 hex digits that change with the case's id, the addresses of its image and label, and their files."""
    files = [file for key in ("image", "label") if key in case for file in _files_of(case[key])]
    states = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files if file.exists()]
    named = [case.get(key) for key in ("id", "image", "label")]
    return hashlib.sha256(json.dumps([named, states]).encode()).hexdigest().encode()


def _files_of(address: str) -> list[Path]:
    path = split_address(address)[0]
    return sorted(path.iterdir()) if path.is_dir() else [path]


def make_loader(
    dataset: AugmentedDataset, batch_size: int, steps: int, seed: int = 0, num_workers: int = 0
) -> DataLoader:
    """`steps` batches of plain tensors an epoch, the same whatever the number of workers.

    batch_size is that of all processes together; each gets its equal part. Raises ConfigError if it cannot be divided.
    """
    own, rank, world_size = share_of_process(batch_size, "batch_size")
    return loader_of(dataset, EpochSampler(len(dataset), own, steps, seed, rank, world_size), own, num_workers)


def share_of_process(size: int, name: str) -> tuple[int, int, int]:
    """This process's part of a global number of samples, its rank and the number of processes."""
    rank, world_size = idist.get_rank(), idist.get_world_size()
    if size % world_size:
        raise ConfigError(f"{name} {size} cannot be divided among {world_size} processes.")
    return size // world_size, rank, world_size


def loader_of(
    dataset: torch.utils.data.Dataset, sampler: Sampler, batch_size: int | None, num_workers: int
) -> DataLoader:
    """The loader of what `sampler` draws, in whole batches; batch_size None: each draw is a batch of its own."""
    return DataLoader(
        dataset,
        batch_size=batch_size,
        sampler=sampler,
        num_workers=num_workers,
        persistent_workers=num_workers > 0,
        pin_memory=torch.cuda.is_available(),
        drop_last=batch_size is not None,
    )


def whole_scans(cases: Sequence[Case], pipeline: Pipeline, cache: str = "memory", cache_dir: str = "") -> DataLoader:
    """Cases with their labels, whole and one at a time: for validation."""
    return DataLoader(cache_cases(cases, pipeline.preprocessing(), cache, cache_dir), batch_size=1)


def thesis_steps_per_epoch(num_labelled: int, num_unlabelled: int, batch_size: int) -> int:
    """Steps of one epoch as the authors count them: unlabelled cases plus the labelled ones repeated to match them.

    16 labelled and 64 unlabelled at batch 4 give 36 steps, 8 and 72 give 38.
    """
    repeats = num_unlabelled // num_labelled + 1
    return max(1, (num_labelled * repeats + num_unlabelled) // batch_size)
