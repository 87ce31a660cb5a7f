"""Divergences of slice-wise latent Gaussians from N(0, I): Corollary 3.3.2.1 of the thesis, dense and in closed form.

A volume of n slices has n Gaussians N(mu_i, Sigma_i) over D latent dimensions. The thesis multiplies their densities;
the product is again a Gaussian, N(mu*, Sigma*), and its KL divergence from N(0, I) is the loss.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

CovarianceForm = Literal["thesis", "released"]


def product_of_gaussians(means: Tensor, covariances: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and covariance of the normalised product of n Gaussians (thesis, equation of Corollary 3.3.2.1).

    means: (..., n, D); covariances: (..., n, D, D), positive definite. Returns (..., D) and (..., D, D). The reference
    form: O(n D^3), by Cholesky factors.
    """
    precisions = torch.cholesky_inverse(torch.linalg.cholesky(covariances))
    factor = torch.linalg.cholesky(precisions.sum(-3))
    weighted = (precisions @ means.unsqueeze(-1)).sum(-3)
    return torch.cholesky_solve(weighted, factor).squeeze(-1), torch.cholesky_inverse(factor)


def gaussian_kl(mean: Tensor, covariance: Tensor) -> Tensor:
    """KL(N(mean, covariance) || N(0, I)) for (..., D) and (..., D, D), in nats."""
    log_det = 2 * torch.linalg.cholesky(covariance).diagonal(dim1=-2, dim2=-1).log().sum(-1)
    trace = covariance.diagonal(dim1=-2, dim2=-1).sum(-1)
    return 0.5 * (trace + mean.square().sum(-1) - mean.shape[-1] - log_det)


def product_of_gaussians_kl(means: Tensor, covariances: Tensor) -> Tensor:
    """KL of the product of n Gaussians from N(0, I), in nats: the reference form of Corollary 3.3.2.1.

    means: (..., n, D); covariances: (..., n, D, D). Returns (...). Training uses `RankOneGaussians.product_kl`.
    """
    return gaussian_kl(*product_of_gaussians(means, covariances))


def independent_components_kl(means: Tensor, variances: Tensor) -> Tensor:
    """The same for diagonal covariances (IC-LRL): means and variances (..., n, D). Returns (...)."""
    variance = 1 / (1 / variances).sum(-2)
    mean = variance * (means / variances).sum(-2)
    return 0.5 * (variance + mean.square() - 1 - variance.log()).sum(-1)


def diagonal_gaussians_kl(mean1: Tensor, variance1: Tensor, mean2: Tensor, variance2: Tensor) -> Tensor:
    """KL(N1 || N2) of two Gaussians with independent components, all (..., D). Returns (...), in nats."""
    terms = variance1 / variance2 + (mean1 - mean2).square() / variance2 - 1 + variance2.log() - variance1.log()
    return 0.5 * terms.sum(-1)


@dataclass(frozen=True)
class IndependentGaussians:
    """n Gaussians with independent components (IC-LRL): mean and variance (..., n, D)."""

    mean: Tensor
    variance: Tensor

    def sample(self, noise: Tensor | None = None) -> Tensor:
        """One draw of every Gaussian, (..., n, D), reparameterised."""
        return self.mean + self.variance.sqrt() * (torch.randn_like(self.mean) if noise is None else noise)

    def trace(self) -> Tensor:
        """Trace of every covariance, (..., n)."""
        return self.variance.sum(-1)

    def sum_kl(self) -> Tensor:
        """Sum over the slices of KL(N(mu_i, Sigma_i) || N(0, I)), (...)."""
        return 0.5 * (self.variance + self.mean.square() - 1 - self.variance.log()).sum((-1, -2))

    def product_kl(self) -> Tensor:
        """KL of the product of the slices' Gaussians from N(0, I), (...)."""
        return independent_components_kl(self.mean, self.variance)


@dataclass(frozen=True)
class RankOneGaussians:
    """n Gaussians whose covariance is a rank-one matrix of `v` plus a multiple of the identity.

    mean and v: (..., n, D); c > 0. form "thesis": Sigma = (v v^T)^2 + c I; "released": Sigma = (v v^T + c I)^2, of the
    authors' code. Both are Sigma = a v v^T + b I, so that sampling costs O(D) and the KL of the product needs n x n
    matrices only; no matrix is inverted. The small matrices are computed in double precision, whatever the input.
    """

    mean: Tensor
    v: Tensor
    c: float
    form: CovarianceForm = "thesis"

    def __post_init__(self) -> None:
        if self.c <= 0:
            raise ValueError(f"c = {self.c}: the covariance is positive definite only for c > 0")
        if self.form not in ("thesis", "released"):
            raise ValueError(f"form '{self.form}' is unknown: thesis or released")

    @property
    def _b(self) -> float:
        return self.c if self.form == "thesis" else self.c**2

    def _a(self, s: Tensor) -> Tensor:
        return s if self.form == "thesis" else s + 2 * self.c

    def sample(self, noise: Tensor | None = None) -> Tensor:
        """One draw of every Gaussian, (..., n, D), reparameterised: mean + root(Sigma) noise."""
        noise = torch.randn_like(self.mean) if noise is None else noise
        s = self.v.square().sum(-1, keepdim=True)
        if self.form == "thesis":
            # (sqrt(s^2 + c) - sqrt(c)) / s without its 0 / 0
            scale, weight = self.c**0.5, s / ((s.square() + self.c).sqrt() + self.c**0.5)
        else:
            scale, weight = self.c, torch.ones_like(s)
        return self.mean + scale * noise + weight * self.v * (self.v * noise).sum(-1, keepdim=True)

    def covariance(self) -> Tensor:
        """Dense covariances (..., n, D, D): for tests and small D."""
        s = self.v.square().sum(-1)[..., None, None]
        identity = torch.eye(self.v.shape[-1], dtype=self.v.dtype, device=self.v.device)
        return self._a(s) * self.v.unsqueeze(-1) * self.v.unsqueeze(-2) + self._b * identity

    def precision(self) -> Tensor:
        """Dense inverses of the covariances, (..., n, D, D), without inverting a matrix: for tests and small D."""
        w = self._root_weight(self.v) * self.v
        identity = torch.eye(self.v.shape[-1], dtype=self.v.dtype, device=self.v.device)
        return (identity - w.unsqueeze(-1) * w.unsqueeze(-2)) / self._b

    def log_det(self) -> Tensor:
        """Log-determinant of every covariance, (..., n)."""
        s = self.v.square().sum(-1)
        return (self.v.shape[-1] - 1) * math.log(self._b) + (self._b + self._a(s) * s).log()

    def trace(self) -> Tensor:
        """Trace of every covariance, (..., n)."""
        s = self.v.square().sum(-1)
        return self._a(s) * s + self._b * self.v.shape[-1]

    def sum_kl(self) -> Tensor:
        """Sum over the slices of KL(N(mu_i, Sigma_i) || N(0, I)), (...): slices taken as independent."""
        dimension = self.v.shape[-1]
        return 0.5 * (self.trace() + self.mean.square().sum(-1) - dimension - self.log_det()).sum(-1)

    def product_kl(self) -> Tensor:
        """KL of the product of the slices' Gaussians from N(0, I), (...): equal to `product_of_gaussians_kl`.

        With w_i = sqrt(g_i) v_i, g = a / (b + a s), the product's precision is (n I - W W^T) / b. Its determinant and
        inverse follow from K = n I - W^T W, n x n (Woodbury, Sylvester).
        """
        mean, v = self.mean.double(), self.v.double()
        n, dimension = v.shape[-2:]
        b = self._b
        w = self._root_weight(v) * v
        gram = w @ w.transpose(-1, -2)
        k = n * torch.eye(n, dtype=gram.dtype, device=gram.device) - gram
        factor = torch.linalg.cholesky(k)
        log_det_k = 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        log_det_precision = log_det_k + (dimension - n) * math.log(n) - dimension * math.log(b)
        trace_inverse_k = torch.cholesky_inverse(factor).diagonal(dim1=-2, dim2=-1).sum(-1)
        trace = (b / n) * (dimension - n + n * trace_inverse_k)
        weighted = (mean - w * (w * mean).sum(-1, keepdim=True)).sum(-2) / b
        projected = torch.cholesky_solve((w @ weighted.unsqueeze(-1)), factor)
        product_mean = (b / n) * (weighted + (w.transpose(-1, -2) @ projected).squeeze(-1))
        kl = 0.5 * (trace + product_mean.square().sum(-1) - dimension + log_det_precision)
        return kl.to(self.mean.dtype)

    def _root_weight(self, v: Tensor) -> Tensor:
        """sqrt(g) of every slice, (..., n, 1), with a finite gradient at v = 0."""
        s = v.square().sum(-1, keepdim=True)
        if self.form == "thesis":
            return torch.linalg.vector_norm(v, dim=-1, keepdim=True) / (s.square() + self.c).sqrt()
        return (s + 2 * self.c).sqrt() / (s + self.c)
