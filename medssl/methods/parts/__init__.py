"""What methods share, in two and in three dimensions: moving averages, ramps, boxes, components, masks, side heads."""

from medssl.methods.parts.averaging import (
    AveragedMethod,
    moving_average,
    noisy,
    noisy_passes,
    noisy_passes_with_features,
    teacher_probs,
)
from medssl.methods.parts.both_ways import Mixtures, mixed_both_ways, mixture_loss, mixtures_of, repeated
from medssl.methods.parts.boxes import boxes_of_sides, pasted, pasted_alike, random_boxes
from medssl.methods.parts.components import largest_components
from medssl.methods.parts.copies import fresh_copy, frozen_copy, take_weights
from medssl.methods.parts.discriminator import Discriminator
from medssl.methods.parts.distance_maps import signed_distance_maps
from medssl.methods.parts.graph_exchange import GraphExchange
from medssl.methods.parts.masks import confidence_mask, entropy_mask, ua_mt_entropy_limit
from medssl.methods.parts.processes import mean_over_processes
from medssl.methods.parts.ramp import linear_ramp, sigmoid_ramp, switched_on
from medssl.methods.parts.side_heads import (
    LogitsCopies,
    SideHeads,
    dropped_features,
    logits_layer,
    num_classes_of,
    with_features,
)
from medssl.methods.parts.step_counter import CountsSteps

__all__ = [
    "AveragedMethod",
    "CountsSteps",
    "Discriminator",
    "GraphExchange",
    "LogitsCopies",
    "Mixtures",
    "SideHeads",
    "boxes_of_sides",
    "confidence_mask",
    "dropped_features",
    "entropy_mask",
    "fresh_copy",
    "frozen_copy",
    "largest_components",
    "linear_ramp",
    "logits_layer",
    "mean_over_processes",
    "mixed_both_ways",
    "mixture_loss",
    "mixtures_of",
    "moving_average",
    "noisy",
    "noisy_passes",
    "noisy_passes_with_features",
    "num_classes_of",
    "pasted",
    "pasted_alike",
    "random_boxes",
    "repeated",
    "sigmoid_ramp",
    "signed_distance_maps",
    "switched_on",
    "take_weights",
    "teacher_probs",
    "ua_mt_entropy_limit",
    "with_features",
]
