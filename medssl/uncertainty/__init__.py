"""How unsure a model is, voxel by voxel and case by case."""

from medssl.uncertainty.maps import entropy_of, mutual_information, predictive_entropy
from medssl.uncertainty.ranking import slice_needs, structure_scores, surroundings, uncertainty_bands
from medssl.uncertainty.streaming import StreamingStatistics

__all__ = [
    "StreamingStatistics",
    "entropy_of",
    "mutual_information",
    "predictive_entropy",
    "slice_needs",
    "structure_scores",
    "surroundings",
    "uncertainty_bands",
]
