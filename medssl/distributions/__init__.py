"""Distributions of latents, and their divergences."""

from medssl.distributions.gaussian import (
    IndependentGaussians,
    RankOneGaussians,
    diagonal_gaussians_kl,
    independent_components_kl,
    product_of_gaussians,
    product_of_gaussians_kl,
)

__all__ = [
    "IndependentGaussians",
    "RankOneGaussians",
    "diagonal_gaussians_kl",
    "independent_components_kl",
    "product_of_gaussians",
    "product_of_gaussians_kl",
]
