"""KL of the product of slice Gaussians, forward and backward: closed form against dense matrices. Claim: 100x and more.

    python benchmarks/run.py product_kl

Thesis size: 32 slices of 256 latent dimensions, batch 4, float32 inputs. One thread: with more, the CPU time counts
threads that spin while they wait for each other, and on a busy machine little else.
"""

import itertools
from collections.abc import Callable, Iterator

import torch
from timing import alternating_medians, one_thread
from torch import Tensor

from medssl.distributions import RankOneGaussians, product_of_gaussians_kl
from medssl.distributions.gaussian import CovarianceForm

COVARIANCES: tuple[tuple[CovarianceForm, float], ...] = (("thesis", 1.0), ("released", 10.0))  # form, c
V_LENGTHS = (0.0, 0.1, 1.0, 10.0, 50.0)
CALLS = 10  # of the closed form in one timing: a single one is too short


def inputs(
    slices: int, dimension: int, batch: int, v_length: float = 1.0, aligned: bool = False
) -> tuple[Tensor, Tensor]:
    """Means and v, (batch, slices, dimension) in float32; `aligned`: all slices of a volume share one v."""
    generator = torch.Generator().manual_seed(0)
    mean, v = torch.randn(2, batch, slices, dimension, generator=generator)
    direction = v[:, :1].expand_as(v) if aligned else v
    return mean, v_length * torch.nn.functional.normalize(direction, dim=-1)


def closed(gaussians: RankOneGaussians) -> Tensor:
    return gaussians.product_kl()


def dense(gaussians: RankOneGaussians) -> Tensor:
    return product_of_gaussians_kl(gaussians.mean, gaussians.covariance())


def deviation(slices: int, dimension: int) -> float:
    """Largest relative deviation of the closed form, in float32 and float64, from the dense one in float64.

    Over both covariance forms, lengths of v, and v independent or shared by all slices. Both precisions get the same
    numbers: those that float32 can hold.
    """
    found: list[Tensor] = []
    for (form, c), v_length, aligned in itertools.product(COVARIANCES, V_LENGTHS, (False, True)):
        mean, v = inputs(slices, dimension, 1, v_length, aligned)
        expected = dense(RankOneGaussians(mean.double(), v.double(), c, form))
        for dtype in (torch.float32, torch.float64):
            ours = closed(RankOneGaussians(mean.to(dtype), v.to(dtype), c, form)).double()
            found.append(((ours - expected) / expected).abs())
    return torch.cat(found).max().item()  # NaN if one is NaN


def gradient_of(kl: Callable[[RankOneGaussians], Tensor], mean: Tensor, v: Tensor, calls: int) -> Callable[[], None]:
    """`calls` forward and backward passes."""

    def run() -> None:
        for _ in range(calls):
            leaves = mean.clone().requires_grad_(), v.clone().requires_grad_()
            kl(RankOneGaussians(*leaves, c=1.0)).sum().backward()

    return run


def measure(slices: int = 32, dimension: int = 256, batch: int = 4, repeats: int = 5) -> Iterator[tuple]:
    with one_thread():
        worst = deviation(slices, dimension)
        mean, v = inputs(slices, dimension, batch)
        ours, peer = alternating_medians(
            gradient_of(closed, mean, v, CALLS), gradient_of(dense, mean, v, 1), repeats=repeats
        )
    size = f"{slices} slices, D = {dimension}, batch {batch}"
    yield f"product KL, {size}: {worst:.1e} off dense float64 at most", "dense, float32", ours / CALLS, peer, 100.0
