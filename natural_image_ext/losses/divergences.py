"""Divergences of two Gaussians: KL, and the uncertainty-guided skew-geometric Jensen-Shannon (Theorem 4.3.3.1).

A Gaussian is a mean (..., D) and either variances (..., D) or a covariance (..., D, D); both are told apart by the
number of dimensions. Results are summed over D, shape (...), in nats.
"""

import torch
from torch import Tensor

from medssl.distributions import diagonal_gaussians_kl


def gaussian_kl(mean1: Tensor, var1: Tensor, mean2: Tensor, var2: Tensor) -> Tensor:
    """KL(N1 || N2)."""
    if var1.ndim == mean1.ndim:
        return diagonal_gaussians_kl(mean1, var1, mean2, var2)
    precision = _inverse(var2)
    trace = (precision * var1.transpose(-1, -2)).sum((-1, -2))
    return 0.5 * (trace + _quadratic(mean1 - mean2, precision) - mean1.shape[-1] + _log_det(var2) - _log_det(var1))


def skew_geometric_js(
    mean1: Tensor, var1: Tensor, mean2: Tensor, var2: Tensor, alpha: Tensor | float, dual: bool = False
) -> Tensor:
    """(1 - alpha) KL(N1 || G) + alpha KL(N2 || G), with the geometric mean G ~ N1^(1 - alpha) N2^alpha.

    dual: the divergences from G instead, (1 - alpha) KL(G || N1) + alpha KL(G || N2). alpha in [0, 1]: a number or a
    tensor of shape (...). Zero where alpha is 0 or 1, and where both Gaussians are the same.
    """
    alpha = torch.as_tensor(alpha, dtype=mean1.dtype, device=mean1.device)
    mean, var = geometric_mean(mean1, var1, mean2, var2, alpha)
    if dual:
        return (1 - alpha) * gaussian_kl(mean, var, mean1, var1) + alpha * gaussian_kl(mean, var, mean2, var2)
    return (1 - alpha) * gaussian_kl(mean1, var1, mean, var) + alpha * gaussian_kl(mean2, var2, mean, var)


def geometric_mean(mean1: Tensor, var1: Tensor, mean2: Tensor, var2: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and (co)variance of the normalised N1^(1 - alpha) N2^alpha: precisions are averaged."""
    if var1.ndim == mean1.ndim:
        weight1, weight2 = (1 - alpha).unsqueeze(-1) / var1, alpha.unsqueeze(-1) / var2
        var = 1 / (weight1 + weight2)
        return var * (weight1 * mean1 + weight2 * mean2), var
    weight1, weight2 = (1 - alpha)[..., None, None] * _inverse(var1), alpha[..., None, None] * _inverse(var2)
    var = _inverse(weight1 + weight2)
    weighted = weight1 @ mean1.unsqueeze(-1) + weight2 @ mean2.unsqueeze(-1)
    return (var @ weighted).squeeze(-1), var


def uncertainty_alpha(context_uncertainty: Tensor, target_uncertainty: Tensor) -> Tensor:
    """alpha_u = u_c / (u_c + u_t) of the mean uncertainties, a scalar without gradient; one half where both are 0.

    The less certain the context points, the closer the intermediate distribution lies to that of the target points.
    """
    context, target = context_uncertainty.detach().mean(), target_uncertainty.detach().mean()
    total = context + target
    return torch.where(total > 0, context / total.clamp_min(torch.finfo(total.dtype).tiny), torch.full_like(total, 0.5))


def _inverse(matrix: Tensor) -> Tensor:
    return torch.cholesky_inverse(torch.linalg.cholesky(matrix))


def _log_det(matrix: Tensor) -> Tensor:
    return 2 * torch.linalg.cholesky(matrix).diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _quadratic(vector: Tensor, matrix: Tensor) -> Tensor:
    return (vector.unsqueeze(-2) @ matrix @ vector.unsqueeze(-1)).squeeze(-1).squeeze(-1)
