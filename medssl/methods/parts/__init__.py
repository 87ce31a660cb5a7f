"""What methods share, in two and in three dimensions: moving averages, ramps, boxes, components, masks."""

from medssl.methods.parts.averaging import AveragedMethod, moving_average, noisy_passes, teacher_probs
from medssl.methods.parts.both_ways import Mixtures, mixed_both_ways, mixture_loss, mixtures_of, repeated
from medssl.methods.parts.boxes import boxes_of_sides, pasted, pasted_alike, random_boxes
from medssl.methods.parts.components import largest_components
from medssl.methods.parts.copies import fresh_copy, frozen_copy, take_weights
from medssl.methods.parts.masks import confidence_mask, entropy_mask, ua_mt_entropy_limit
from medssl.methods.parts.ramp import linear_ramp, sigmoid_ramp, switched_on
from medssl.methods.parts.step_counter import CountsSteps

__all__ = [
    "AveragedMethod",
    "CountsSteps",
    "Mixtures",
    "boxes_of_sides",
    "confidence_mask",
    "entropy_mask",
    "fresh_copy",
    "frozen_copy",
    "largest_components",
    "linear_ramp",
    "mixed_both_ways",
    "mixture_loss",
    "mixtures_of",
    "moving_average",
    "noisy_passes",
    "pasted",
    "pasted_alike",
    "random_boxes",
    "repeated",
    "sigmoid_ramp",
    "switched_on",
    "take_weights",
    "teacher_probs",
    "ua_mt_entropy_limit",
]
