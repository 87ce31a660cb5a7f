"""Supervised training on the labelled cases alone: the lower bound (few labels) and upper bound (all labels)."""

from medssl.methods.facts import MethodFacts
from medssl.methods.scan_method import LabelledLearning


class Supervised(LabelledLearning):
    """The segmentation loss of `network` on labelled batches (`image`, `label`)."""

    facts = MethodFacts("supervised", learns_from_unlabelled=False, place=0)
