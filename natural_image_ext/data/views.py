"""From pictures to batches: weak and strong views with torchvision, drawn by seed, so that runs resume exactly."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler
from torchvision.transforms import v2

from medssl.data.mixing import UNLABELLED_SEED, TwoStreams
from medssl.data.sampling import Draw, EpochSampler, share_of_process
from medssl.errors import ConfigError, DataError
from natural_image_ext.data.sources import Picture, Pictures
from natural_image_ext.data.splits import ImageSplit

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)  # of CIFAR; close enough for photographs at large


@dataclass(frozen=True)
class Views:
    """The augmentations: each maps (3, H, W) uint8 to a normalised (3, size, size).

    weak: flip and shifted crop. strong: RandAugment and cutout, then the weak one; with two_weak a second weak view.
    plain: no chance in it.
    """

    size: int
    operations: int = 3
    magnitude: int = 10
    two_weak: bool = False

    def plain(self) -> v2.Compose:
        return v2.Compose([*self._resized(), *_normalised()])

    def weak(self) -> v2.Compose:
        return v2.Compose([*self._resized(), *self._shifted(), *_normalised()])

    def strong(self) -> v2.Compose:
        if self.two_weak:
            return self.weak()
        cutout = v2.RandomErasing(p=1.0, scale=(1e-4, 0.25), ratio=(1.0, 1.0), value=127)
        randomised = [v2.RandAugment(self.operations, self.magnitude, fill=127), cutout]
        return v2.Compose([*self._resized(), *randomised, *self._shifted(), *_normalised()])

    def _resized(self) -> list[v2.Transform]:
        return [v2.Resize(self.size, antialias=True), v2.CenterCrop(self.size)]

    def _shifted(self) -> list[v2.Transform]:
        crop = v2.RandomCrop(self.size, padding=max(1, self.size // 8), padding_mode="reflect")
        return [v2.RandomHorizontalFlip(), crop]


def _normalised() -> list[v2.Transform]:
    return [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]


def read_picture(picture: Picture) -> Tensor:
    """(3, H, W) uint8; DataError for a file that is damaged or has no three colours."""
    if not isinstance(picture, Path):
        return torch.from_numpy(np.ascontiguousarray(picture)).permute(2, 0, 1)
    try:
        with Image.open(picture) as image:
            if image.mode != "RGB":
                raise DataError(f"{picture}: mode {image.mode}, expected RGB. Convert it to three colours of 8 bits.")
            return torch.from_numpy(np.array(image)).permute(2, 0, 1)
    except (UnidentifiedImageError, OSError) as error:
        raise DataError(f"{picture}: not a readable picture ({type(error).__name__}). Replace or remove it.") from error


class LabelledPictures(Dataset):
    """Single pictures with their label and place: for evaluation."""

    def __init__(self, pictures: Pictures, transform: Callable[[Tensor], Tensor]) -> None:
        self.pictures, self.transform = pictures, transform

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, place: int) -> dict[str, Any]:
        image = self.transform(read_picture(self.pictures.pictures[place]))
        return {"image": image, "label": self.pictures.labels[place], "index": place}


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


class SemiSupervisedPictures(Dataset):
    """Whole batches: `image`, `label` of labelled pictures; `weak`, `strong`, `index` of unlabelled ones."""

    def __init__(self, split: ImageSplit, views: Views) -> None:
        self.split, self.weak, self.strong = split, views.weak(), views.strong()

    def __getitem__(self, draws: StepDraws) -> dict[str, Any]:
        labelled, unlabelled = self.split.labelled, self.split.unlabelled
        return {
            "image": torch.stack([_seen(labelled, draw, self.weak) for draw in draws.labelled]),
            "label": torch.tensor([labelled.labels[draw.case] for draw in draws.labelled]),
            "weak": torch.stack([_seen(unlabelled, draw, self.weak) for draw in draws.unlabelled]),
            "strong": torch.stack([_seen(unlabelled, _other(draw), self.strong) for draw in draws.unlabelled]),
            "index": torch.tensor([draw.case for draw in draws.unlabelled]),
        }


def _other(draw: Draw) -> Draw:
    """The same picture with another chance."""
    return Draw(draw.case, draw.seed + 1)


def _seen(pictures: Pictures, draw: Draw, transform: Callable[[Tensor], Tensor]) -> Tensor:
    """The picture of a draw, augmented by the draw's own chance and nothing else's."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(draw.seed)
        return transform(read_picture(pictures.pictures[draw.case]))


def make_picture_loader(
    split: ImageSplit, views: Views, batch_size: int, ratio: int, steps: int, seed: int = 0, num_workers: int = 0
) -> DataLoader:
    """`steps` batches an epoch of `batch_size` labelled and `ratio` times as many unlabelled pictures.

    The numbers are those of all processes together. Raises ConfigError if they cannot be divided among them.
    """
    if ratio < 1:
        raise ConfigError(f"ratio {ratio}: expected at least one unlabelled picture for each labelled one.")
    own, rank, world_size = share_of_process(batch_size, "batch_size")
    labelled = EpochSampler(len(split.labelled), own, steps, seed, rank, world_size)
    unlabelled = EpochSampler(len(split.unlabelled), own * ratio, steps, seed + UNLABELLED_SEED, rank, world_size)
    return DataLoader(
        SemiSupervisedPictures(split, views),
        batch_size=None,
        sampler=StepSampler(labelled, unlabelled, steps),
        num_workers=num_workers,
        persistent_workers=num_workers > 0,
        pin_memory=torch.cuda.is_available(),
    )
