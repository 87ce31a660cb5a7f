"""Operations are counted right, and a machine without a compiler has no peak."""

import shutil

import pytest
import torch

from medssl.networks.channel_drop import conv3d


def test_operations_of_a_convolution_are_two_for_each_weight_and_place(benchmark):
    layer = torch.nn.Conv3d(3, 5, 3, padding=1)
    found = benchmark.gflop_of(lambda: layer(torch.zeros(2, 3, 8, 7, 6)))
    assert found == pytest.approx(2 * 2 * 8 * 7 * 6 * 3 * 5 * 27 / 1e9)


def test_operations_that_torch_does_not_count_by_itself_are_counted(benchmark):
    x, layer = torch.zeros(1, 3, 8, 7, 6), torch.nn.Conv3d(3, 5, 3, padding=1)
    ours = benchmark.gflop_of(lambda: conv3d(x, layer.weight, layer.bias))  # oneDNN, past torch's own dispatch
    assert ours == pytest.approx(benchmark.gflop_of(lambda: layer(x)))


def test_least_time_is_operations_over_peak(benchmark, monkeypatch):
    monkeypatch.setattr(benchmark, "fma_peak_gflops", lambda: 50.0)
    matrix = torch.zeros(100, 100)
    assert benchmark.least_seconds(lambda: matrix @ matrix) == pytest.approx(2e6 / 50e9)

    monkeypatch.setattr(benchmark, "fma_peak_gflops", lambda: None)
    assert benchmark.least_seconds(lambda: matrix @ matrix) is None


def test_without_a_compiler_there_is_no_peak(benchmark, monkeypatch, capsys):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert benchmark.fma_peak_gflops.__wrapped__() is None
    assert "no C compiler" in capsys.readouterr().out


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_kernel_compiles_and_says_a_number(benchmark):
    assert benchmark.fma_peak_gflops.__wrapped__() > 0
