"""The data of a bundle for pictures: which there are, who plays which role."""

from functools import cached_property
from pathlib import Path
from typing import Any

from medssl.bundle.keys import given_options
from natural_image_ext.bundle.options import PictureDataOptions
from natural_image_ext.data.checks import check_pictures
from natural_image_ext.data.sources import ImageSource, open_images
from natural_image_ext.data.splits import ImageSplit, split_images


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
    def resize_to(self) -> int | None:
        """The side that pictures have before squares of `size` are cut from them: of ImageNet 256 for 224."""
        return round(self.size * 256 / 224) if self.options.dataset_name == "imagenet" else None

    @property
    def num_classes(self) -> int:
        return self.options.num_classes or self.source.num_classes

    def check(self, runs_dir: str | Path) -> None:
        """Raise DataError if a picture cannot be read."""
        check_pictures(self.split, runs_dir)
