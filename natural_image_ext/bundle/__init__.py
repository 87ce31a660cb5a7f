"""What the configurations of the bundles for pictures, scenes and slices are made of."""

from natural_image_ext.bundle.begin import begin_pictures, begin_scenes, natural_session, trainer_of
from natural_image_ext.bundle.picture_data import PictureData
from natural_image_ext.bundle.picture_stage import PictureChoices, PictureStage, picture_network
from natural_image_ext.bundle.scene_data import SceneData
from natural_image_ext.bundle.scene_stage import SceneChoices, SceneStage, scene_network
from natural_image_ext.bundle.slice_stage import SliceStage

__all__ = [
    "PictureChoices",
    "PictureData",
    "PictureStage",
    "SceneChoices",
    "SceneData",
    "SceneStage",
    "SliceStage",
    "begin_pictures",
    "begin_scenes",
    "natural_session",
    "picture_network",
    "scene_network",
    "trainer_of",
]
