"""Training methods: each a module from a batch to its named losses, and nothing more."""

from medssl.methods.supervised import Supervised

__all__ = ["Supervised"]
