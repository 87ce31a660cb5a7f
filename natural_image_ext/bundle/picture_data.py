"""The data of a bundle for pictures: which there are, who plays which role."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from medssl.bundle.keys import given_options
from medssl.core.options import option
from natural_image_ext.data.checks import check_pictures
from natural_image_ext.data.sources import ImageSource, open_images
from natural_image_ext.data.splits import ImageSplit, split_images


@dataclass(frozen=True)
class PictureDataOptions:
    """What a training on pictures is told of its data."""

    dataset_name: str = option("folder", "the data set: cifar10, cifar100, stl10, imagenet or folder")
    dataset_dir: str = option("data", "the folder of the data set", place=True)
    image_size: int | None = option(None, "side of the squares that pictures become; the data set's by default")
    size: int | None = option(None, "side that the network sees; that of the pictures by default", at_least=1)
    num_classes: int | None = option(None, "classes of the network; the data set's by default", at_least=2)
    download: bool = option(False, "let torchvision fetch CIFAR and STL-10", place=True)
    labelled: int = option(40, "pictures trained with their labels", at_least=1)
    validation: int | float = option(0, "pictures to validate with, or their share", at_least=0)
    test: int | float = option(0.2, "pictures to test with, or their share, where the data set has none", at_least=0)
    split_seed: int = option(0, "draws validation and test pictures")
    seed: int = option(0, "draws the labelled pictures, the first weights and all else", incidental=True)
    keep_in_memory: bool = option(False, "hold pictures in memory once they are read", incidental=True)


class PictureData:
    """The pictures of a data set and their split; each is made when it is first asked for."""

    def __init__(self, **listed: Any) -> None:
        self.options = given_options(PictureDataOptions, listed)

    @cached_property
    def source(self) -> ImageSource:
        asked = self.options
        return open_images(asked.dataset_name, asked.dataset_dir, asked.download, asked.image_size)

    @cached_property
    def split(self) -> ImageSplit:
        asked = self.options
        return split_images(self.source, asked.labelled, asked.validation, asked.test, asked.seed, asked.split_seed)

    @property
    def size(self) -> int:
        return self.options.size or self.source.size

    @property
    def num_classes(self) -> int:
        return self.options.num_classes or self.source.num_classes

    def check(self, runs_dir: str | Path) -> None:
        """Raise DataError if a picture cannot be read."""
        check_pictures(self.split, runs_dir)
