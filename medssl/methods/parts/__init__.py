"""What methods share, in two and in three dimensions: moving averages, ramps, boxes, components, masks."""

from medssl.methods.parts.averaging import AveragedMethod, moving_average, teacher_probs
from medssl.methods.parts.boxes import boxes_of_sides, pasted, pasted_alike, random_boxes
from medssl.methods.parts.components import largest_components
from medssl.methods.parts.masks import confidence_mask, entropy_mask, ua_mt_entropy_limit
from medssl.methods.parts.ramp import linear_ramp, sigmoid_ramp, switched_on
from medssl.methods.parts.step_counter import CountsSteps

__all__ = [
    "AveragedMethod",
    "CountsSteps",
    "boxes_of_sides",
    "confidence_mask",
    "entropy_mask",
    "largest_components",
    "linear_ramp",
    "moving_average",
    "pasted",
    "pasted_alike",
    "random_boxes",
    "sigmoid_ramp",
    "switched_on",
    "teacher_probs",
    "ua_mt_entropy_limit",
]
