"""Divergences between the latent distributions of neural processes."""

from natural_image_ext.losses.divergences import gaussian_kl, skew_geometric_js, uncertainty_alpha

__all__ = ["gaussian_kl", "skew_geometric_js", "uncertainty_alpha"]
