"""Every form of the slice-wise KL against golden values, torch.distributions, dense algebra and finite differences."""

import pytest
import torch
from torch.distributions import MultivariateNormal, Normal, kl_divergence

from medssl.distributions import (
    IndependentGaussians,
    RankOneGaussians,
    diagonal_gaussians_kl,
    independent_components_kl,
    product_of_gaussians,
    product_of_gaussians_kl,
)

F64 = torch.float64
MU = torch.tensor([[1, -0.5], [0.25, 2]], dtype=F64)
V = torch.tensor([[0.5, -1], [2, 0.3]], dtype=F64)
FORMS = pytest.mark.parametrize("form", ["thesis", "released"])


def from_standard(mean, covariance):
    """KL from N(0, I) by torch.distributions."""
    standard = MultivariateNormal(torch.zeros_like(mean), torch.eye(len(mean), dtype=mean.dtype))
    return kl_divergence(MultivariateNormal(mean, covariance), standard)


def random_gaussians(n=6, dimension=9, scale=1.0, c=0.5, form="thesis", dtype=F64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    mean, v = torch.randn(2, n, dimension, generator=generator, dtype=F64)
    return RankOneGaussians(mean.to(dtype), (scale * v).to(dtype), c, form)


@pytest.mark.parametrize(
    ("form", "c", "expected"),
    [
        ("released", 1, 1.2065838462),
        ("released", 10, 56.8764916684),
        ("thesis", 1, 0.8990559494),
        ("thesis", 10, 4.0754917419),
    ],
)
def test_golden_k1(form, c, expected):
    gaussians = RankOneGaussians(MU, V, c, form)
    assert gaussians.product_kl().item() == pytest.approx(expected, abs=1e-9)
    assert product_of_gaussians_kl(MU, gaussians.covariance()).item() == pytest.approx(expected, abs=1e-9)


def test_golden_k1_mean_and_covariance_of_the_product():
    mean, covariance = product_of_gaussians(MU, RankOneGaussians(MU, V, 1, "released").covariance())
    assert mean.tolist() == pytest.approx([0.1531310485, 1.5235963400])
    assert covariance.flatten().tolist() == pytest.approx([1.1428085115, -0.1538289450, -0.1538289450, 0.7687226734])


@pytest.mark.parametrize(("c", "expected"), [(1, 14.7033419532), (10, 253.5305463595)])
def test_golden_k1_sum_of_slices(c, expected):
    assert RankOneGaussians(MU, V, c, "released").sum_kl().item() == pytest.approx(expected, abs=1e-8)


def test_golden_k2():
    one = torch.tensor([[1.0, 2.0, 3.0]], dtype=F64)
    assert product_of_gaussians_kl(one, torch.eye(3, dtype=F64)[None]).item() == pytest.approx(7)
    four = torch.zeros(4, 3, dtype=F64)
    assert product_of_gaussians_kl(four, 4 * torch.eye(3, dtype=F64).repeat(4, 1, 1)).item() == pytest.approx(0)


def test_golden_k3_equals_the_general_formula():
    variances = torch.tensor([[0.5, 2, 1], [1.5, 0.25, 4]], dtype=F64)
    means = torch.tensor([[0.1, -1, 2], [0.7, 0.5, -0.3]], dtype=F64)
    assert independent_components_kl(means, variances).item() == pytest.approx(1.8252417672, abs=1e-9)
    assert product_of_gaussians_kl(means, torch.diag_embed(variances)).item() == pytest.approx(1.8252417672, abs=1e-9)


def test_floor_of_the_released_form():
    zero = torch.zeros(32, 256, dtype=F64)
    assert RankOneGaussians(zero, zero, 10, "released").product_kl().item() == pytest.approx(126.1524117519, abs=1e-8)


@pytest.mark.parametrize("seed", range(10))
def test_dense_product_equals_torch_distributions(seed):
    generator = torch.Generator().manual_seed(seed)
    root = torch.randn(5, 4, 4, generator=generator, dtype=F64)
    covariances = root @ root.transpose(1, 2) + torch.eye(4, dtype=F64)
    means = torch.randn(5, 4, generator=generator, dtype=F64)
    precision = covariances.inverse().sum(0)
    mean = precision.inverse() @ (covariances.inverse() @ means[..., None]).sum(0).squeeze(-1)
    expected = from_standard(mean, precision.inverse())
    assert product_of_gaussians_kl(means, covariances).item() == pytest.approx(expected.item(), abs=1e-10)


@FORMS
@pytest.mark.parametrize(("n", "dimension"), [(1, 5), (3, 3), (8, 5), (4, 40)])
def test_closed_form_equals_the_dense_one_for_any_number_of_slices(form, n, dimension):
    gaussians = random_gaussians(n, dimension, form=form)
    dense = product_of_gaussians_kl(gaussians.mean, gaussians.covariance())
    assert gaussians.product_kl().item() == pytest.approx(dense.item(), rel=1e-10)


@FORMS
def test_full_size_closed_form_is_within_1e_6_of_dense_double_in_both_precisions(form):
    double = random_gaussians(32, 256, scale=0.3, c=1.0, form=form)
    dense = product_of_gaussians_kl(double.mean, double.covariance()).item()
    single = RankOneGaussians(double.mean.float(), double.v.float(), 1.0, form)
    rounded = RankOneGaussians(single.mean.double(), single.v.double(), 1.0, form)
    expected_single = product_of_gaussians_kl(rounded.mean, rounded.covariance()).item()
    assert double.product_kl().item() == pytest.approx(dense, rel=1e-10)
    assert single.product_kl().item() == pytest.approx(expected_single, rel=1e-6)


@FORMS
@pytest.mark.parametrize("scale", [1.0, 10.0, 100.0])
def test_large_and_aligned_v_stay_exact_in_single_precision(form, scale):
    direction = torch.randn(16, generator=torch.Generator().manual_seed(1), dtype=F64)
    v = scale * direction.expand(5, 16)  # all slices share one direction: the hardest case for the determinant
    mean = torch.randn(5, 16, generator=torch.Generator().manual_seed(2), dtype=F64)
    single = RankOneGaussians(mean.float(), v.float(), 1.0, form)
    double = RankOneGaussians(single.mean.double(), single.v.double(), 1.0, form)
    s = double.v.square().sum(-1, keepdim=True)
    # by eigenvalues: along the shared direction every covariance is a s + b, elsewhere b
    b, a = 1.0, s if form == "thesis" else s + 2
    unit = double.v / s.sqrt()
    along, across = (a * s + b)[0].item() / 5, b / 5
    average = double.mean.mean(0)
    kl = 0.5 * (
        along + 15 * across + average.square().sum() - 16 - torch.tensor([along, *[across] * 15]).double().log().sum()
    )
    assert torch.allclose(unit[0].norm(), torch.ones((), dtype=F64))
    assert single.product_kl().item() == pytest.approx(kl.item(), rel=1e-4)


@FORMS
def test_sum_of_slices_equals_torch_distributions(form):
    gaussians = random_gaussians(form=form)
    covariance = gaussians.covariance()
    expected = sum(from_standard(m, s) for m, s in zip(gaussians.mean, covariance, strict=True))
    assert gaussians.sum_kl().item() == pytest.approx(expected.item(), rel=1e-10)


@FORMS
def test_log_det_and_trace_equal_the_dense_ones(form):
    gaussians = random_gaussians(form=form)
    covariance = gaussians.covariance()
    assert torch.allclose(gaussians.log_det(), torch.logdet(covariance))
    assert torch.allclose(gaussians.trace(), covariance.diagonal(dim1=-2, dim2=-1).sum(-1))


@FORMS
def test_samples_have_the_stated_mean_and_covariance(form):
    gaussians = random_gaussians(2, 3, form=form)
    noise = torch.eye(3, dtype=F64)[:, None].expand(3, 2, 3)
    root = torch.stack([gaussians.sample(noise[i]) - gaussians.mean for i in range(3)], -1)
    assert torch.allclose(root @ root.transpose(-1, -2), gaussians.covariance())  # exact: sampling is linear in noise
    many = RankOneGaussians(gaussians.mean.expand(20000, 2, 3), gaussians.v.expand(20000, 2, 3), gaussians.c, form)
    torch.manual_seed(0)
    samples = many.sample()
    assert torch.allclose(samples.mean(0), gaussians.mean, atol=0.2)


@FORMS
@pytest.mark.parametrize("loss", ["product_kl", "sum_kl"])
def test_gradients_equal_finite_differences(form, loss):
    gaussians = random_gaussians(3, 4, form=form)
    inputs = (gaussians.mean.requires_grad_(), gaussians.v.requires_grad_())
    assert torch.autograd.gradcheck(lambda m, v: getattr(RankOneGaussians(m, v, 0.5, form), loss)(), inputs)


@FORMS
def test_gradient_at_v_zero_is_finite(form):
    mean, v = torch.randn(3, 4), torch.zeros(3, 4, requires_grad=True)
    gaussians = RankOneGaussians(mean, v, 0.5, form)
    (gaussians.product_kl() + gaussians.sum_kl() + gaussians.sample().sum()).backward()
    assert torch.isfinite(v.grad).all()


def test_batches_are_computed_one_by_one():
    first, second = random_gaussians(seed=1), random_gaussians(seed=2)
    both = RankOneGaussians(torch.stack([first.mean, second.mean]), torch.stack([first.v, second.v]), 0.5)
    assert both.product_kl().tolist() == pytest.approx([first.product_kl().item(), second.product_kl().item()])
    assert both.sum_kl().shape == (2,) and both.sample().shape == (2, 6, 9)


def test_product_kl_penalises_only_the_weighted_mean_where_sum_kl_penalises_every_slice():
    mean = torch.tensor([[5.0], [-5.0], [5.0], [-5.0]], dtype=F64)
    gaussians = RankOneGaussians(mean, torch.zeros(4, 1, dtype=F64), 4.0)
    assert gaussians.product_kl().item() == pytest.approx(0)
    assert gaussians.sum_kl().item() > 50


@pytest.mark.parametrize(("c", "form"), [(0, "thesis"), (-1.0, "released"), (1, "other")])
def test_impossible_arguments_are_refused(c, form):
    with pytest.raises(ValueError, match=r"c =|form"):
        RankOneGaussians(MU, V, c, form)


@FORMS
def test_precision_is_the_inverse_of_the_covariance(form):
    gaussians = random_gaussians(form=form, scale=2.0)
    product = gaussians.precision() @ gaussians.covariance()
    assert torch.allclose(product, torch.eye(9, dtype=F64).expand_as(product), atol=1e-9)


def random_independent(n=5, dimension=4):
    generator = torch.Generator().manual_seed(3)
    mean, log_variance = torch.randn(2, n, dimension, generator=generator, dtype=F64)
    return IndependentGaussians(mean, log_variance.exp())


def test_independent_components_equal_torch_distributions_and_the_dense_product():
    gaussians = random_independent()
    dense = torch.diag_embed(gaussians.variance)
    expected = sum(from_standard(mean, covariance) for mean, covariance in zip(gaussians.mean, dense, strict=True))
    assert gaussians.sum_kl().item() == pytest.approx(expected.item(), rel=1e-12)
    assert gaussians.product_kl().item() == pytest.approx(
        product_of_gaussians_kl(gaussians.mean, dense).item(), rel=1e-12
    )
    assert torch.allclose(gaussians.trace(), dense.diagonal(dim1=-2, dim2=-1).sum(-1))


def test_samples_of_independent_components_have_the_stated_mean_and_variance():
    one = random_independent(n=2, dimension=3)
    torch.manual_seed(0)
    many = IndependentGaussians(one.mean.expand(40_000, 2, 3), one.variance.expand(40_000, 2, 3)).sample()
    assert torch.allclose(many.mean(0), one.mean, atol=0.05)
    assert torch.allclose(many.var(0), one.variance, rtol=0.05)


@pytest.mark.parametrize("loss", ["product_kl", "sum_kl"])
def test_gradients_of_independent_components_equal_finite_differences(loss):
    one = random_independent(n=3, dimension=3)

    def divergence(mean, variance):
        return getattr(IndependentGaussians(mean, variance), loss)()

    assert torch.autograd.gradcheck(divergence, (one.mean.requires_grad_(), one.variance.requires_grad_()))


def test_kl_of_two_diagonal_gaussians_is_that_of_torch_and_zero_of_equal_ones():
    (mean1, mean2), (std1, std2) = MU, V.abs()
    expected = kl_divergence(Normal(mean1, std1), Normal(mean2, std2)).sum()
    found = diagonal_gaussians_kl(mean1, std1.square(), mean2, std2.square())
    assert torch.allclose(found, expected) and expected > 0.1
    assert float(diagonal_gaussians_kl(mean1, std1.square(), mean1, std1.square())) == 0
