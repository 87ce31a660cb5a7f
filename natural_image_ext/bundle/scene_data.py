"""The data of a bundle for scenes: which images there are, which have masks, who plays which role."""

from functools import cached_property
from pathlib import Path
from typing import Any

from medssl.bundle.keys import given_options
from natural_image_ext.bundle.options import SceneDataOptions
from natural_image_ext.data.checks import check_scenes
from natural_image_ext.data.scene_splits import SceneSplit, split_scenes
from natural_image_ext.data.scene_views import steps_of_epoch
from natural_image_ext.data.scenes import SceneSource, open_scenes


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
