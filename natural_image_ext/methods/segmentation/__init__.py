"""Semi-supervised segmentation, one file for each framework, on one shared step."""

from natural_image_ext.methods.segmentation.augseg import AugSeg
from natural_image_ext.methods.segmentation.cps import CPS
from natural_image_ext.methods.segmentation.cutmix import AdaptiveCutMix, BetaCutMix, CutMix
from natural_image_ext.methods.segmentation.mean_teacher import MeanTeacher
from natural_image_ext.methods.segmentation.ps_mt import PSMT
from natural_image_ext.methods.segmentation.recipes import FRAMEWORKS, SceneRecipe, build_seg_method, seg_recipe
from natural_image_ext.methods.segmentation.step import Learned, Taught, TeacherStudent
from natural_image_ext.methods.segmentation.u2pl import U2PL

__all__ = [
    "CPS",
    "FRAMEWORKS",
    "PSMT",
    "U2PL",
    "AdaptiveCutMix",
    "AugSeg",
    "BetaCutMix",
    "CutMix",
    "Learned",
    "MeanTeacher",
    "SceneRecipe",
    "Taught",
    "TeacherStudent",
    "build_seg_method",
    "seg_recipe",
]
