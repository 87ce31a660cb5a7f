"""Losses of the thesis."""

from medssl.losses.gaussian import (
    IndependentGaussians,
    RankOneGaussians,
    independent_components_kl,
    product_of_gaussians,
    product_of_gaussians_kl,
)
from medssl.losses.segmentation import DiceCE, soft_dice_loss

__all__ = [
    "DiceCE",
    "IndependentGaussians",
    "RankOneGaussians",
    "independent_components_kl",
    "product_of_gaussians",
    "product_of_gaussians_kl",
    "soft_dice_loss",
]
