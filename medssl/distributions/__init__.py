"""Distributions of latents, and their divergences."""

from medssl.distributions.gaussian import (
    IndependentGaussians,
    RankOneGaussians,
    independent_components_kl,
    product_of_gaussians,
    product_of_gaussians_kl,
)

__all__ = [
    "IndependentGaussians",
    "RankOneGaussians",
    "independent_components_kl",
    "product_of_gaussians",
    "product_of_gaussians_kl",
]
