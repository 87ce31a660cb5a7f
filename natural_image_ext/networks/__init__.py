"""Networks of the natural-image models: backbones, plain heads, and heads that are neural processes."""

from natural_image_ext.networks.backbones import build_backbone
from natural_image_ext.networks.class_banks import ClassBanks
from natural_image_ext.networks.classifier import Classifier, build_classifier
from natural_image_ext.networks.heads import Head, LayeredHead, LinearHead, PlainHead, SegmentationHead
from natural_image_ext.networks.memory_bank import MemoryBank
from natural_image_ext.networks.np_head import ConditionedOutput, NPHead, NPOutput
from natural_image_ext.networks.np_seg_head import NPSegHead, NPSegOutput, NPSegTraining
from natural_image_ext.networks.segmentation import SegmentationNetwork, build_segmentation
from natural_image_ext.networks.wide_resnet import WideResNet, wrn_10_1, wrn_28_2, wrn_28_8, wrn_37_2

__all__ = [
    "ClassBanks",
    "Classifier",
    "ConditionedOutput",
    "Head",
    "LayeredHead",
    "LinearHead",
    "MemoryBank",
    "NPHead",
    "NPOutput",
    "NPSegHead",
    "NPSegOutput",
    "NPSegTraining",
    "PlainHead",
    "SegmentationHead",
    "SegmentationNetwork",
    "WideResNet",
    "build_backbone",
    "build_classifier",
    "build_segmentation",
    "wrn_10_1",
    "wrn_28_2",
    "wrn_28_8",
    "wrn_37_2",
]
