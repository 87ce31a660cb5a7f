"""Semi-supervised classification, one file for each method, on one shared step."""

from natural_image_ext.methods.classification.fixmatch import FixMatch
from natural_image_ext.methods.classification.mixmatch import MixMatch
from natural_image_ext.methods.classification.np_match import NPMatch
from natural_image_ext.methods.classification.recipes import METHODS, PictureRecipe, build_method, recipe
from natural_image_ext.methods.classification.selection import Selected, Selection
from natural_image_ext.methods.classification.step import SemiSupervisedStep
from natural_image_ext.methods.classification.supervised import Supervised
from natural_image_ext.methods.classification.uda import UDA
from natural_image_ext.methods.classification.ups import UPS

__all__ = [
    "METHODS",
    "UDA",
    "UPS",
    "FixMatch",
    "MixMatch",
    "NPMatch",
    "PictureRecipe",
    "Selected",
    "Selection",
    "SemiSupervisedStep",
    "Supervised",
    "build_method",
    "recipe",
]
