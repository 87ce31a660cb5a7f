"""How good a segmentation is, and how far its uncertainty can be trusted."""

from medssl.metrics.calibration import ece, uce
from medssl.metrics.masks import evaluate_masks
from medssl.metrics.overlap import dice, jaccard
from medssl.metrics.pavpu import pavpu

__all__ = ["dice", "ece", "evaluate_masks", "jaccard", "pavpu", "uce"]
