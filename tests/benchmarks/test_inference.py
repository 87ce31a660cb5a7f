"""What the benchmark compares gives the same probabilities; no time is judged."""

import shutil

import pytest
import torch

from medssl.inference import MCDropoutInferer
from medssl.networks import MCDropoutUNet3D

WINDOW = (16, 16, 4)


def test_peer_is_the_same_prediction_up_to_chance(benchmark):
    torch.manual_seed(0)
    network, image = MCDropoutUNet3D(1, 2, widths=(4, 8)), torch.rand(1, 1, 24, 16, 4)
    theirs = benchmark.plain_loop(image, network, WINDOW, (8, 16, 4), 150)
    ours = MCDropoutInferer(WINDOW, (8, 16, 4), 150, mode="exact")(image, network)
    assert (ours - theirs).abs().mean() < 0.03
    silent = MCDropoutUNet3D(1, 2, widths=(4, 8), dropout=0.0)
    theirs = benchmark.plain_loop(image, silent, WINDOW, (8, 16, 4), 1)
    assert torch.allclose(MCDropoutInferer(WINDOW, (8, 16, 4), 1, mode="exact")(image, silent), theirs, atol=1e-5)


def test_rows_count_the_passes_of_the_thesis_and_ours(benchmark):
    network = MCDropoutUNet3D(1, 2, widths=(4, 8))
    same, thesis, half = benchmark.full_size_rows(network, WINDOW)
    assert "2001 passes" in same[0] and "28900 passes" in same[1]
    assert "263 passes" in thesis[0] and "28900 passes" in thesis[1] and "540 passes" in half[1]
    assert benchmark.passes_row()[2:6] == (263, 28_900, 100, 160)
    small = benchmark.small_scan_row(widths=(2, 4), window=(8, 8, 4), steps=(4, 4, 2))
    assert "stride 4x4x2, small network, 263 passes" in small[0] and "stride 2x2x2, 1500 passes" in small[1]
    for row in (same, thesis, half, small, benchmark.exact_row(network, (24, 16, 4), WINDOW, 2)):
        assert row[2] > 0 < row[3]


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_no_row_can_be_faster_than_its_limit_allows(benchmark):
    network = MCDropoutUNet3D(1, 2, widths=(4, 8))
    for row in (benchmark.exact_row(network, (24, 16, 4), WINDOW, 2), *benchmark.full_size_rows(network, WINDOW)):
        assert 0 < row[5] < row[2]
