"""Prediction and evaluation of classifiers, and their export as bundles."""

from natural_image_ext.inference.batch import PicturePredictions, find_pictures
from natural_image_ext.inference.evaluation import PictureEvaluation
from natural_image_ext.inference.export import export_classifier
from natural_image_ext.inference.predictor import PicturePredictor, load_picture_predictor
from natural_image_ext.inference.sample_curve import write_picture_curve
from natural_image_ext.inference.sampling import SampledInferer

__all__ = [
    "PictureEvaluation",
    "PicturePredictions",
    "PicturePredictor",
    "SampledInferer",
    "export_classifier",
    "find_pictures",
    "load_picture_predictor",
    "write_picture_curve",
]
