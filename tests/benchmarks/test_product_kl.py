"""The benchmark of the product KL runs at a tiny size, and what it says of exactness holds; times are not judged."""

import pytest
import torch


def test_row_names_size_and_deviation_and_the_number_of_threads_comes_back(benchmark):
    threads = torch.get_num_threads()
    [(claim, peer, ours_s, peer_s, _)] = benchmark.measure(slices=3, dimension=8, batch=2, repeats=1)
    assert torch.get_num_threads() == threads
    assert "3 slices, D = 8, batch 2: " in claim and "dense" in peer
    assert ours_s > 0 and peer_s > 0


@pytest.mark.parametrize(("slices", "dimension"), [(1, 4), (3, 8), (8, 5), (32, 64)])
def test_closed_form_is_within_1e_6_of_dense_double(benchmark, slices, dimension):
    assert benchmark.deviation(slices, dimension) <= 1e-6


@pytest.mark.parametrize("factor", [1.00001, float("nan")])
def test_deviation_would_see_a_wrong_closed_form(benchmark, monkeypatch, factor):
    monkeypatch.setattr(benchmark, "closed", lambda gaussians: factor * gaussians.product_kl())
    assert not benchmark.deviation(3, 8) <= 1e-6
