"""Skew-geometric JS against golden values, torch.distributions, Monte Carlo and the thesis' closed forms."""

import pytest
import torch
from torch.distributions import MultivariateNormal, kl_divergence

from natural_image_ext.losses import gaussian_kl, skew_geometric_js, uncertainty_alpha
from natural_image_ext.losses.divergences import geometric_mean

F64 = torch.float64
MEAN1, VAR1 = torch.tensor([0.5, -1.0], dtype=F64), torch.tensor([0.25, 1.0], dtype=F64)
MEAN2, VAR2 = torch.tensor([1.5, 0.25], dtype=F64), torch.tensor([1.0, 0.5], dtype=F64)


def random_pair(dimension=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    means = torch.randn(2, dimension, generator=generator, dtype=F64)
    factors = torch.randn(2, dimension, dimension, generator=generator, dtype=F64)
    covariances = factors @ factors.transpose(-1, -2) + 0.5 * torch.eye(dimension, dtype=F64)
    return means[0], covariances[0], means[1], covariances[1]


@pytest.mark.parametrize(
    ("alpha", "primal", "dual"),
    [(0.25, 0.7218605188, 0.4441551062), (0.5, 0.9532532988, 0.6014342012), (0.0, 0.0, 0.0), (1.0, 0.0, 0.0)],
)
def test_golden_j1_diagonal_and_full(alpha, primal, dual):
    full1, full2 = torch.diag(VAR1), torch.diag(VAR2)
    for var1, var2 in ((VAR1, VAR2), (full1, full2)):
        found = skew_geometric_js(MEAN1, var1, MEAN2, var2, alpha)
        assert found.item() == pytest.approx(primal, abs=1e-9)
        assert skew_geometric_js(MEAN1, var1, MEAN2, var2, alpha, dual=True).item() == pytest.approx(dual, abs=1e-9)


def test_golden_geometric_mean():
    mean, var = geometric_mean(MEAN1, VAR1, MEAN2, VAR2, torch.tensor(0.25, dtype=F64))
    assert mean.tolist() == pytest.approx([0.5769230769, -0.5], abs=1e-9)
    assert var.tolist() == pytest.approx([0.3076923077, 0.8], abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.85])
def test_theorems_closed_forms_and_torch_distributions_agree(seed, alpha):
    mean1, cov1, mean2, cov2 = random_pair(seed=seed)
    precision = (1 - alpha) * cov1.inverse() + alpha * cov2.inverse()
    cov = precision.inverse()
    mean = cov @ ((1 - alpha) * cov1.inverse() @ mean1 + alpha * cov2.inverse() @ mean2)
    middle, first, second = (
        MultivariateNormal(m, covariance_matrix=c) for m, c in ((mean, cov), (mean1, cov1), (mean2, cov2))
    )
    primal = (1 - alpha) * kl_divergence(first, middle) + alpha * kl_divergence(second, middle)
    logs = torch.logdet(cov) - (1 - alpha) * torch.logdet(cov1) - alpha * torch.logdet(cov2)
    dual = 0.5 * (
        -logs
        + alpha * mean2 @ cov2.inverse() @ mean2
        - mean @ precision @ mean
        + (1 - alpha) * mean1 @ cov1.inverse() @ mean1
    )
    assert skew_geometric_js(mean1, cov1, mean2, cov2, alpha).item() == pytest.approx(primal.item(), rel=1e-10)
    assert skew_geometric_js(mean1, cov1, mean2, cov2, alpha, dual=True).item() == pytest.approx(dual.item(), rel=1e-9)


def test_monte_carlo_gives_the_same_value():
    alpha = 0.3
    torch.manual_seed(0)
    first, second = (torch.distributions.Normal(m, v.sqrt()) for m, v in ((MEAN1, VAR1), (MEAN2, VAR2)))
    mean, var = geometric_mean(MEAN1, VAR1, MEAN2, VAR2, torch.tensor(alpha, dtype=F64))
    middle = torch.distributions.Normal(mean, var.sqrt())
    estimate = 0.0
    for weight, source in ((1 - alpha, first), (alpha, second)):
        draws = source.sample((400_000,))
        estimate += weight * (source.log_prob(draws) - middle.log_prob(draws)).sum(-1).mean().item()
    assert skew_geometric_js(MEAN1, VAR1, MEAN2, VAR2, alpha).item() == pytest.approx(estimate, abs=0.01)


def test_kl_equals_torch_distributions_for_batches():
    generator = torch.Generator().manual_seed(1)
    mean1, mean2 = torch.randn(2, 5, 3, generator=generator, dtype=F64)
    var1, var2 = torch.rand(2, 5, 3, generator=generator, dtype=F64) + 0.1
    expected = kl_divergence(
        torch.distributions.Normal(mean1, var1.sqrt()), torch.distributions.Normal(mean2, var2.sqrt())
    )
    assert torch.allclose(gaussian_kl(mean1, var1, mean2, var2), expected.sum(-1))


def test_same_gaussians_have_no_divergence_and_alpha_may_differ_in_a_batch():
    mean, var = torch.randn(3, 4, dtype=F64), torch.rand(3, 4, dtype=F64) + 0.1
    alphas = torch.tensor([0.2, 0.5, 0.9], dtype=F64)
    assert torch.allclose(skew_geometric_js(mean, var, mean, var, alphas), torch.zeros(3, dtype=F64), atol=1e-12)
    both = skew_geometric_js(mean, var, mean + 1, 2 * var, alphas)
    one = skew_geometric_js(mean[1], var[1], mean[1] + 1, 2 * var[1], 0.5)
    assert both[1].item() == pytest.approx(one.item())


@pytest.mark.parametrize("dual", [False, True])
def test_gradients_equal_finite_differences(dual):
    inputs = [tensor.clone().requires_grad_() for tensor in (MEAN1, VAR1, MEAN2, VAR2)]
    assert torch.autograd.gradcheck(lambda *args: skew_geometric_js(*args, alpha=0.3, dual=dual), inputs)


def test_golden_a1_alpha_of_uncertainties():
    context = torch.tensor([[0.9, 0.1], [0.6, 0.4]], dtype=F64)
    target = torch.tensor([[0.5, 0.5], [0.8, 0.2], [0.99, 0.01]], dtype=F64)
    entropies = [torch.special.entr(probs).sum(-1) for probs in (context, target)]
    assert entropies[0].mean().item() == pytest.approx(0.4990473202, abs=1e-9)
    assert uncertainty_alpha(*entropies).item() == pytest.approx(0.5450707111, abs=1e-9)


def test_alpha_is_one_half_where_all_are_certain_and_has_no_gradient():
    zero = torch.zeros(3, requires_grad=True)
    found = uncertainty_alpha(zero, zero)
    assert found.item() == 0.5 and not found.requires_grad
