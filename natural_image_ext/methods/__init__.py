"""Semi-supervised classification methods, one file each, on one shared step."""

from natural_image_ext.methods.fixmatch import FixMatch
from natural_image_ext.methods.mixmatch import MixMatch
from natural_image_ext.methods.np_match import NPMatch
from natural_image_ext.methods.recipes import METHODS, Recipe, build_method, recipe
from natural_image_ext.methods.selection import Selected, Selection
from natural_image_ext.methods.step import AveragedMethod, SemiSupervisedStep
from natural_image_ext.methods.uda import UDA
from natural_image_ext.methods.ups import UPS

__all__ = [
    "METHODS",
    "UDA",
    "UPS",
    "AveragedMethod",
    "FixMatch",
    "MixMatch",
    "NPMatch",
    "Recipe",
    "Selected",
    "Selection",
    "SemiSupervisedStep",
    "build_method",
    "recipe",
]
