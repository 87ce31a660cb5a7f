"""How unsure a model is, voxel by voxel and case by case."""

from medssl.uncertainty.maps import StreamingStatistics, entropy_of, mutual_information, predictive_entropy

__all__ = ["StreamingStatistics", "entropy_of", "mutual_information", "predictive_entropy"]
