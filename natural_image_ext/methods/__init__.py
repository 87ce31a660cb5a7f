"""Semi-supervised classification: one short file for what each method adds to the shared step."""

from natural_image_ext.methods.fixmatch import FixMatch
from natural_image_ext.methods.mixmatch import MixMatch
from natural_image_ext.methods.np_match import NPMatch
from natural_image_ext.methods.selection import Selected, Selection
from natural_image_ext.methods.step import Classifier, SemiSupervisedStep
from natural_image_ext.methods.uda import UDA
from natural_image_ext.methods.ups import UPS

__all__ = ["UDA", "UPS", "Classifier", "FixMatch", "MixMatch", "NPMatch", "Selected", "Selection", "SemiSupervisedStep"]
