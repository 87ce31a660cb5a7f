"""Prediction and evaluation of classifiers and of segmentation networks, and their export as bundles.

`SliceInferer` and `export_slices` are medssl's; bundles of before name them here.
"""

from medssl.inference.slice_export import export_slices
from medssl.inference.slice_sampling import SliceInferer
from natural_image_ext.inference.batch import PicturePredictions, find_pictures
from natural_image_ext.inference.evaluation import PictureEvaluation
from natural_image_ext.inference.export import export_classifier, export_segmentation
from natural_image_ext.inference.predictor import PicturePredictor, load_picture_predictor
from natural_image_ext.inference.sample_curve import write_picture_curve
from natural_image_ext.inference.sampling import SampledInferer
from natural_image_ext.inference.scene_batch import ScenePredictions
from natural_image_ext.inference.scene_curve import write_scene_curve
from natural_image_ext.inference.scene_evaluation import SceneEvaluation, kept_settings
from natural_image_ext.inference.scene_predictor import ScenePredictor, load_scene_predictor
from natural_image_ext.inference.scene_sampling import SampledSceneInferer, SlidingScenes, scene_inferer

__all__ = [
    "PictureEvaluation",
    "PicturePredictions",
    "PicturePredictor",
    "SampledInferer",
    "SampledSceneInferer",
    "SceneEvaluation",
    "ScenePredictions",
    "ScenePredictor",
    "SliceInferer",
    "SlidingScenes",
    "export_classifier",
    "export_segmentation",
    "export_slices",
    "find_pictures",
    "kept_settings",
    "load_picture_predictor",
    "load_scene_predictor",
    "scene_inferer",
    "write_picture_curve",
    "write_scene_curve",
]
