"""Natural images: sets by name, splits, checks, weak and strong views; pictures with a class, scenes with a mask.

The slices of scans, and the loader of images, are medssl's; bundles of before name them here.
"""

from medssl.data.image_batches import make_image_loader as make_scene_loader
from medssl.data.slice_views import SliceViews
from medssl.data.slices import SemiSupervisedSlices, slices_at
from natural_image_ext.data.checks import check_pictures, check_scenes
from natural_image_ext.data.scene_splits import SceneSplit, read_scene_split, split_scenes
from natural_image_ext.data.scene_views import (
    LabelledScenes,
    SceneViews,
    SemiSupervisedScenes,
    steps_of_epoch,
)
from natural_image_ext.data.scenes import Scenes, SceneSource, open_scenes, read_mask
from natural_image_ext.data.sources import ImageSource, Pictures, open_images, read_picture
from natural_image_ext.data.splits import ImageSplit, read_image_split, split_images
from natural_image_ext.data.views import LabelledPictures, SemiSupervisedPictures, Views, make_picture_loader

__all__ = [
    "ImageSource",
    "ImageSplit",
    "LabelledPictures",
    "LabelledScenes",
    "Pictures",
    "SceneSource",
    "SceneSplit",
    "SceneViews",
    "Scenes",
    "SemiSupervisedPictures",
    "SemiSupervisedScenes",
    "SemiSupervisedSlices",
    "SliceViews",
    "Views",
    "check_pictures",
    "check_scenes",
    "make_picture_loader",
    "make_scene_loader",
    "open_images",
    "open_scenes",
    "read_image_split",
    "read_mask",
    "read_picture",
    "read_scene_split",
    "slices_at",
    "split_images",
    "split_scenes",
    "steps_of_epoch",
]
