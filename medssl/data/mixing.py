"""Batches of labelled and unlabelled patches, of fixed proportion; an unlabelled scan's label is never opened."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import torch
from torch.utils.data import DataLoader, Sampler

from medssl.core.errors import ConfigError
from medssl.data.pipeline import Pipeline
from medssl.data.sampling import AugmentedDataset, Draw, EpochSampler, cache_cases, loader_of, share_of_process
from medssl.data.split import Split
from medssl.data.views import PLAIN

UNLABELLED_SEED = 7_919  # keeps the two streams' draws apart


class MixedDataset(torch.utils.data.Dataset):
    """The labelled samples, then the unlabelled ones: `is_labelled` tells them apart, an empty label stands in."""

    def __init__(self, labelled: AugmentedDataset, unlabelled: AugmentedDataset) -> None:
        self.labelled, self.unlabelled = labelled, unlabelled

    def __len__(self) -> int:
        return len(self.labelled) + len(self.unlabelled)

    def __getitem__(self, draw: Draw | int) -> dict[str, Any]:
        index, seed = draw if isinstance(draw, tuple) else (draw, 0)
        if index < len(self.labelled):
            return {**self.labelled[Draw(index, seed)], "is_labelled": True}
        sample = self.unlabelled[Draw(index - len(self.labelled), seed)]
        return {**sample, "label": torch.zeros_like(sample["image"][:1], dtype=torch.uint8), "is_labelled": False}


class TwoStreams:
    """Draws of labelled and of unlabelled cases for the `steps` batches of an epoch."""

    def __init__(self, labelled: EpochSampler, unlabelled: EpochSampler, steps: int) -> None:
        self.labelled, self.unlabelled, self.steps = labelled, unlabelled, steps

    def set_epoch(self, epoch: int) -> None:
        self.labelled.set_epoch(epoch)
        self.unlabelled.set_epoch(epoch)

    def batches(self) -> Iterator[tuple[list[Draw], list[Draw]]]:
        """Labelled and unlabelled draws, batch by batch."""
        labelled_draws, unlabelled_draws = iter(self.labelled), iter(self.unlabelled)
        labelled_per_batch = len(self.labelled) // self.steps
        unlabelled_per_batch = len(self.unlabelled) // self.steps
        for _ in range(self.steps):
            labelled = list(islice(labelled_draws, labelled_per_batch))
            unlabelled = list(islice(unlabelled_draws, unlabelled_per_batch))
            yield labelled, unlabelled


class TwoStreamSampler(TwoStreams, Sampler[Draw]):
    """The draws one by one, labelled ones of a batch first; unlabelled cases are numbered after labelled ones."""

    def __len__(self) -> int:
        return len(self.labelled) + len(self.unlabelled)

    def __iter__(self) -> Iterator[Draw]:
        for labelled, unlabelled in self.batches():
            yield from labelled
            yield from (Draw(self.labelled.num_cases + case, seed) for case, seed in unlabelled)


def training_dataset(
    split: Split,
    pipeline: Pipeline,
    cache: str = "memory",
    cache_dir: str = "",
    views: Sequence[str] | str = PLAIN,
) -> MixedDataset:
    """Augmented patches of the split's labelled and unlabelled cases, the deterministic part computed once.

    views: of every patch, labelled or not, as `Pipeline.augmentation` has them.
    """
    parts = []
    for role, with_label in (("labelled", True), ("unlabelled", False)):
        preprocessing = pipeline.preprocessing(with_label, training=True)
        cached = cache_cases(split.role(role), preprocessing, cache, cache_dir)
        parts.append(AugmentedDataset(cached, pipeline.augmentation(with_label, views)))
    return MixedDataset(*parts)


def make_mixed_loader(
    dataset: MixedDataset,
    batch_size: int,
    labelled_per_batch: int,
    steps: int,
    seed: int = 0,
    num_workers: int = 0,
    with_unlabelled: bool = True,
) -> DataLoader:
    """`steps` batches an epoch, `labelled_per_batch` of their patches labelled; the rest is unlabelled, or left out.

    The numbers are those of all processes together. Raises ConfigError if one of the two kinds is missing in a batch or
    in the split, or cannot be divided among the processes.
    """
    labelled = _stream(dataset.labelled, "labelled", labelled_per_batch, steps, seed)
    if not with_unlabelled:
        return loader_of(dataset, labelled, len(labelled) // steps, num_workers)
    unlabelled_per_batch = batch_size - labelled_per_batch
    unlabelled = _stream(dataset.unlabelled, "unlabelled", unlabelled_per_batch, steps, seed + UNLABELLED_SEED)
    sampler = TwoStreamSampler(labelled, unlabelled, steps)
    return loader_of(dataset, sampler, len(sampler) // steps, num_workers)


def _stream(cases: AugmentedDataset, kind: str, per_batch: int, steps: int, seed: int) -> EpochSampler:
    own, rank, world_size = share_of_process(per_batch, f"{kind} patches a batch:")
    if own < 1:
        raise ConfigError(f"{per_batch} {kind} patches a batch. Choose labelled_per_batch between 0 and batch_size.")
    if not len(cases):
        raise ConfigError(
            f"{per_batch} {kind} patches a batch, but the split has no {kind} case. Give --{kind} a number above 0, or "
            "train with the bundle mcdropout_unet3d, which needs labels only."
        )
    return EpochSampler(len(cases), own, steps, seed, rank, world_size)
