"""The data of a bundle for scenes: which images there are, which have masks, who plays which role."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from medssl.bundle.keys import given_options
from medssl.core.options import option
from natural_image_ext.data.checks import check_scenes
from natural_image_ext.data.scene_splits import SceneSplit, split_scenes
from natural_image_ext.data.scene_views import steps_of_epoch
from natural_image_ext.data.scenes import SceneSource, open_scenes


@dataclass(frozen=True)
class SceneDataOptions:
    """What a training on scenes is told of its data."""

    dataset_name: str = option("folder", "the data set: voc, voc_blender, cityscapes, camvid or folder")
    dataset_dir: str = option("data", "the folder of the data set", place=True)
    classes: Any = option(None, "names of the classes of a folder; numbers by default")
    num_classes: int | None = option(None, "classes of the network; the data set's by default", at_least=2)
    void: int | None = option(None, "value of masks that stands for no class; the data set's by default", at_least=0)
    lists_dir: str | None = option(None, "folder with published lists that say which images are labelled", place=True)
    labelled: int | float = option(0.0625, "images trained with their masks, or their share")
    validation: int | float = option(0, "images to validate with, or their share", at_least=0)
    test: int | float = option(0.25, "images to test with, or their share, where the data set has none", at_least=0)
    seed: int = option(0, "draws the labelled images, the first weights and all else", incidental=True)


class SceneData:
    """The images of a data set and their split; each is made when it is first asked for."""

    def __init__(self, **listed: Any) -> None:
        self.options = given_options(SceneDataOptions, listed)

    @cached_property
    def source(self) -> SceneSource:
        return open_scenes(self.options.dataset_name, self.options.dataset_dir, self.options.classes)

    @cached_property
    def split(self) -> SceneSplit:
        asked = self.options
        return split_scenes(self.source, asked.labelled, asked.validation, asked.test, asked.seed, asked.lists_dir)

    @property
    def num_classes(self) -> int:
        return self.options.num_classes or self.source.num_classes

    @property
    def void(self) -> int:
        return self.source.void if self.options.void is None else self.options.void

    def steps_per_epoch(self, batch_size: int) -> int:
        """As many as it takes to see every unlabelled image once."""
        return steps_of_epoch(self.split, batch_size)

    def check(self, runs_dir: str | Path) -> None:
        """Raise DataError if an image or a mask cannot be read."""
        check_scenes(self.split, self.num_classes, self.void, runs_dir)
