"""From pictures to batches: weak and strong views with torchvision, drawn by seed, so that runs resume exactly."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2

from medssl.core.errors import ConfigError
from medssl.core.flags import flag
from medssl.data.image_batches import StepDraws, StepSampler
from medssl.data.mixing import UNLABELLED_SEED
from medssl.data.sampling import Draw, EpochSampler, loader_of, share_of_process
from natural_image_ext.data.rand_augment import SquareCutout, UniformRandAugment
from natural_image_ext.data.sources import Pictures
from natural_image_ext.data.splits import ImageSplit

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)  # of CIFAR; close enough for photographs at large


@dataclass(frozen=True)
class Views:
    """The augmentations, of (3, H, W) uint8 to (3, size, size).

    sized: the square in the middle, uint8 still. Of that weak and strong make normalised views: weak by flip and
    shifted crop, strong by RandAugment and cutout and then as weak does; with two_weak it is a second weak view.
    plain: sized and normalised, no chance in it. resize_to: the side of the sized square where it is larger than
    `size`, which is cut from it then, as ImageNet's 224 from 256; plain cuts the middle.
    """

    size: int
    operations: int = 3
    two_weak: bool = False
    resize_to: int | None = None

    def sized(self) -> v2.Compose:
        side = self.resize_to or self.size
        return v2.Compose([v2.Resize(side, antialias=True), v2.CenterCrop(side)])

    def plain(self) -> v2.Compose:
        cut = [] if self.resize_to is None else [v2.CenterCrop(self.size)]
        return v2.Compose([self.sized(), *cut, *_normalised()])

    def weak(self) -> v2.Compose:
        return v2.Compose([*self._shifted(), *_normalised()])

    def strong(self) -> v2.Compose:
        if self.two_weak:
            return self.weak()
        randomised = [UniformRandAugment(self.operations), SquareCutout()]
        return v2.Compose([*randomised, *self._shifted(), *_normalised()])

    def _shifted(self) -> list[v2.Transform]:
        share = 8 if self.resize_to is None else 56  # of CIFAR's 32 pixels 4, and of ImageNet's 224
        crop = v2.RandomCrop(self.size, padding=max(1, self.size // share), padding_mode="reflect")
        return [v2.RandomHorizontalFlip(), crop]


def _normalised() -> list[v2.Transform]:
    return [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]


class LabelledPictures(Dataset):
    """Single pictures with their label: for evaluation."""

    def __init__(self, pictures: Pictures, transform: Callable[[Tensor], Tensor]) -> None:
        self.pictures, self.transform = pictures, transform

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, place: int) -> dict[str, Any]:
        image = self.transform(self.pictures.read(place))
        return {"image": image, "label": self.pictures.labels[place]}


class SizedPictures:
    """Pictures by their place as (3, size, size) uint8; with `keep` each is read once and stays in memory."""

    def __init__(self, pictures: Pictures, views: Views, keep: bool) -> None:
        self.pictures, self.sized, self.keep = pictures, views.sized(), keep
        self._kept: dict[int, Tensor] = {}

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, place: int) -> Tensor:
        if place in self._kept:
            return self._kept[place]
        picture = self.sized(self.pictures.read(place))
        if self.keep:
            self._kept[place] = picture
        return picture


class SemiSupervisedPictures(Dataset):
    """Whole batches: `image`, `label`, `id` of labelled pictures; `weak`, `strong`, `index` of unlabelled ones.

    keep: hold pictures in memory once they are read (each worker holds its own).
    """

    def __init__(self, split: ImageSplit, views: Views, keep: bool | str = False) -> None:
        keep = flag(keep, "keep_in_memory")
        self.labels, self.ids = split.labelled.labels, split.labelled.ids
        self.labelled, self.unlabelled = (
            SizedPictures(part, views, keep) for part in (split.labelled, split.unlabelled)
        )
        self.weak, self.strong = views.weak(), views.strong()

    def __getitem__(self, draws: StepDraws) -> dict[str, Any]:
        other_chance = [Draw(draw.case, draw.seed + 1) for draw in draws.unlabelled]
        with torch.random.fork_rng(devices=[]):
            return {
                "image": _seen(self.labelled, draws.labelled, self.weak),
                "label": torch.tensor([self.labels[draw.case] for draw in draws.labelled]),
                "id": [self.ids[draw.case] for draw in draws.labelled],
                "weak": _seen(self.unlabelled, draws.unlabelled, self.weak),
                "strong": _seen(self.unlabelled, other_chance, self.strong),
                "index": torch.tensor([draw.case for draw in draws.unlabelled]),
            }


def _seen(pictures: SizedPictures, draws: Sequence[Draw], transform: Callable[[Tensor], Tensor]) -> Tensor:
    """The pictures of the draws, each augmented by its draw's own chance and nothing else's."""
    views = []
    for draw in draws:
        torch.random.default_generator.manual_seed(draw.seed)  # a tenth of the time that torch.manual_seed takes
        views.append(transform(pictures[draw.case]))
    return torch.stack(views)


def make_picture_loader(
    dataset: SemiSupervisedPictures, batch_size: int, ratio: int, steps: int, seed: int = 0, num_workers: int = 0
) -> DataLoader:
    """`steps` batches an epoch of `batch_size` labelled and `ratio` times as many unlabelled pictures.

    The numbers are those of all processes together. Raises ConfigError if they cannot be divided among them.
    """
    if ratio < 1:
        raise ConfigError(f"ratio {ratio}: expected at least one unlabelled picture for each labelled one.")
    own, rank, world_size = share_of_process(batch_size, "batch_size")
    labelled = EpochSampler(len(dataset.labelled), own, steps, seed, rank, world_size)
    unlabelled = EpochSampler(len(dataset.unlabelled), own * ratio, steps, seed + UNLABELLED_SEED, rank, world_size)
    return loader_of(dataset, StepSampler(labelled, unlabelled, steps), None, num_workers)
