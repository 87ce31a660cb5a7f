"""Entropy and mutual information against scipy and torch.distributions, streaming against stacked."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy as scipy_entropy

from medssl.uncertainty import StreamingStatistics, entropy_of, mutual_information, predictive_entropy


def samples(count=20, classes=3, batch=2, dtype=torch.float32, seed=0):
    """(T, B, C, 5, 4, 3) with sure, unsure and exactly one-hot voxels."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(count, batch, classes, 5, 4, 3, generator=generator, dtype=torch.float64)
    probs = torch.softmax(logits * torch.tensor([0.1, 1, 10, 100, 10_000]).view(5, 1, 1), dim=2)
    return probs.to(dtype)


def stream(probs):
    statistics = StreamingStatistics()
    for sample in probs:
        statistics.update(sample)
    return statistics


def test_entropy_of_the_golden_example_in_bits():
    assert entropy_of(torch.tensor([[0.7, 0.2, 0.1]], dtype=torch.float64)).item() == pytest.approx(1.1567796494)


def test_entropy_equals_scipy_and_torch_distributions():
    probs = samples(dtype=torch.float64)
    mean = probs.mean(0)
    expected = scipy_entropy(mean.numpy(), base=2, axis=1)
    np.testing.assert_allclose(predictive_entropy(probs), expected, atol=1e-12)
    nats = torch.distributions.Categorical(probs=mean.movedim(1, -1)).entropy()
    torch.testing.assert_close(entropy_of(mean), nats / math.log(2))


def test_mutual_information_equals_its_formula():
    probs = samples(dtype=torch.float64)
    per_sample = scipy_entropy(probs.numpy(), base=2, axis=2)
    expected = scipy_entropy(probs.mean(0).numpy(), base=2, axis=1) - per_sample.mean(0)
    np.testing.assert_allclose(mutual_information(probs), expected, atol=1e-12)


def test_maps_lose_samples_and_classes_and_keep_the_rest():
    assert predictive_entropy(samples()).shape == mutual_information(samples()).shape == (2, 5, 4, 3)
    assert predictive_entropy(torch.full((4, 2, 3, 6), 1 / 3)).shape == (2, 6)


def test_entropy_is_zero_when_all_samples_agree_on_one_class():
    probs = torch.zeros(4, 1, 3, 2, 2)
    probs[:, :, 1] = 1
    assert torch.equal(predictive_entropy(probs), torch.zeros(1, 2, 2))
    assert torch.equal(mutual_information(probs), torch.zeros(1, 2, 2))


def test_samples_that_are_each_sure_of_another_class_have_all_their_entropy_as_mutual_information():
    probs = torch.eye(4).view(4, 1, 4, 1)
    assert predictive_entropy(probs).item() == mutual_information(probs).item() == pytest.approx(2)


def test_equal_unsure_samples_have_entropy_but_no_mutual_information():
    probs = torch.full((5, 1, 2, 3), 0.5)
    torch.testing.assert_close(predictive_entropy(probs), torch.ones(1, 3))
    torch.testing.assert_close(mutual_information(probs), torch.zeros(1, 3))


@settings(deadline=None)
@given(count=st.integers(1, 6), classes=st.integers(2, 5), seed=st.integers(0, 1000))
def test_mutual_information_is_between_zero_and_the_entropy(count, classes, seed):
    probs = samples(count, classes, seed=seed)
    information, entropy = mutual_information(probs), predictive_entropy(probs)
    assert (information >= 0).all()
    assert (information <= entropy + 1e-6).all()
    assert (entropy <= math.log2(classes) + 1e-6).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("count", [1, 20])
def test_streaming_equals_stacked(dtype, count):
    probs = samples(count, dtype=dtype)
    statistics, exact = stream(probs), probs.double()
    assert statistics.count == count
    for streamed, stacked in [
        (statistics.mean, exact.mean(0)),
        (statistics.entropy, predictive_entropy(exact)),
        (statistics.mutual_information, mutual_information(exact)),
    ]:
        assert streamed.dtype == dtype
        torch.testing.assert_close(streamed.double(), stacked, atol=1e-6, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_samples_are_summed_in_float32(dtype):
    probs = samples(dtype=dtype)
    exact = predictive_entropy(probs.double())
    assert stream(probs).entropy.dtype == predictive_entropy(probs).dtype == torch.float32
    torch.testing.assert_close(stream(probs).entropy.double(), exact, atol=1e-6, rtol=0)
    torch.testing.assert_close(predictive_entropy(probs).double(), exact, atol=1e-6, rtol=0)


def test_streaming_keeps_neither_the_samples_nor_their_gradients():
    probs = samples(3).requires_grad_()
    before = probs.detach().clone()
    statistics = stream(probs)
    assert torch.equal(probs, before)
    assert not statistics.mean.requires_grad
    held = [value for value in vars(statistics).values() if isinstance(value, torch.Tensor)]
    assert sum(tensor.numel() for tensor in held) == probs[0].numel() + probs[0, :, 0].numel() + probs[0, 0, 0].numel()


def test_statistics_may_be_read_between_updates():
    probs = samples(4)
    statistics = stream(probs[:2])
    torch.testing.assert_close(statistics.mean, probs[:2].mean(0))
    statistics.update(probs[2])
    torch.testing.assert_close(statistics.entropy, predictive_entropy(probs[:3]))


def test_misuse_is_refused():
    with pytest.raises(RuntimeError, match="update"):
        _ = StreamingStatistics().entropy
    statistics = stream(samples(1))
    with pytest.raises(ValueError, match="shape"):
        statistics.update(samples(1, batch=1)[0])
