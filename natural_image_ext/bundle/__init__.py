"""What the configurations of the bundles for pictures, scenes and slices are made of."""

from medssl.bundle.training import trainer_of
from natural_image_ext.bundle.begin import begin_pictures, begin_scenes
from natural_image_ext.bundle.picture_data import PictureData
from natural_image_ext.bundle.picture_training import PictureChoices, PictureTraining, picture_network
from natural_image_ext.bundle.scene_data import SceneData
from natural_image_ext.bundle.scene_training import SceneChoices, SceneTraining, scene_network
from natural_image_ext.bundle.slice_training import SliceTraining

__all__ = [
    "PictureChoices",
    "PictureData",
    "PictureTraining",
    "SceneChoices",
    "SceneData",
    "SceneTraining",
    "SliceTraining",
    "begin_pictures",
    "begin_scenes",
    "picture_network",
    "scene_network",
    "trainer_of",
]
