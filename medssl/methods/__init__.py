"""Training methods: each a module from a batch to its named losses, and nothing more."""

from medssl.methods.gbdl import LatentLearning, PosteriorLearning
from medssl.methods.supervised import Supervised

__all__ = ["LatentLearning", "PosteriorLearning", "Supervised"]
