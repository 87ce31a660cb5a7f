"""Whole batches of labelled images and of weak and strong views of unlabelled ones, drawn by seed."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sized
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from medssl.data.mixing import UNLABELLED_SEED, TwoStreams
from medssl.data.sampling import Draw, EpochSampler, loader_of, share_of_process


@dataclass(frozen=True)
class StepDraws:
    """What one batch is made of."""

    labelled: list[Draw]
    unlabelled: list[Draw]


class StepSampler(TwoStreams, Sampler[StepDraws]):
    """The batches of an epoch, each as a whole."""

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[StepDraws]:
        return (StepDraws(labelled, unlabelled) for labelled, unlabelled in self.batches())


class SemiSupervisedImages(Dataset, ABC):
    """Whole batches: `image`, `label`, `id` of labelled images; `weak`, `strong` views of unlabelled ones.

    `valid` (B, H, W): which pixels of unlabelled ones are image, not padding.
    """

    labelled: Sized
    unlabelled: Sized

    def __getitem__(self, draws: StepDraws) -> dict[str, Any]:
        with torch.random.fork_rng(devices=[]):
            labelled = [self.labelled_sample(draw) for draw in draws.labelled]
            unlabelled = [self.unlabelled_views(draw) for draw in draws.unlabelled]
        return {
            "image": torch.stack([image for image, _, _ in labelled]),
            "label": torch.stack([mask.long() for _, mask, _ in labelled]),
            "weak": torch.stack([weak for weak, _, _ in unlabelled]),
            "strong": torch.stack([strong for _, strong, _ in unlabelled]),
            "valid": torch.stack([valid for _, _, valid in unlabelled]),
            "id": [name for _, _, name in labelled],
        }

    @abstractmethod
    def labelled_sample(self, draw: Draw) -> tuple[Tensor, Tensor, str]:
        """Image and mask of a labelled draw, augmented by the draw's own chance, and the name of what was drawn."""

    @abstractmethod
    def unlabelled_views(self, draw: Draw) -> tuple[Tensor, Tensor, Tensor]:
        """Weak and strong view of an unlabelled draw, and which of their pixels are image, not padding."""


def make_image_loader(
    dataset: SemiSupervisedImages, batch_size: int, steps: int, seed: int = 0, num_workers: int = 0
) -> DataLoader:
    """`steps` batches an epoch of `batch_size` labelled and as many unlabelled images, those of all processes."""
    own, rank, world_size = share_of_process(batch_size, "batch_size")
    labelled = EpochSampler(len(dataset.labelled), own, steps, seed, rank, world_size)
    unlabelled = EpochSampler(len(dataset.unlabelled), own, steps, seed + UNLABELLED_SEED, rank, world_size)
    return loader_of(dataset, StepSampler(labelled, unlabelled, steps), None, num_workers)
