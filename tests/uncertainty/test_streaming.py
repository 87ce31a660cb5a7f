"""Windows of a scan as samples: every voxel has the statistics of what was said of it."""

import pytest
import torch

from medssl.uncertainty import StreamingStatistics, mutual_information, predictive_entropy

SIZE, WINDOW = (6, 5, 4), (4, 3, 2)
STARTS = [(0, 0, 0), (2, 2, 2), (0, 2, 0), (2, 0, 2), (1, 1, 1), (0, 0, 2), (2, 0, 0), (0, 2, 2), (2, 2, 0)]


@pytest.fixture
def windows():
    logits = torch.randn(len(STARTS), 1, 3, *WINDOW, generator=torch.Generator().manual_seed(0))
    return torch.softmax(3 * logits, dim=2)


def said_of(voxel, windows):
    """(n, 1, 3): the probabilities that windows give the voxel."""
    where = [tuple(v - s for v, s in zip(voxel, start, strict=True)) for start in STARTS]
    inside = [all(0 <= at < length for at, length in zip(each, WINDOW, strict=True)) for each in where]
    return torch.stack([w[:, :, *each] for w, each, yes in zip(windows, where, inside, strict=True) if yes])


@pytest.mark.parametrize("voxel", [(0, 0, 0), (2, 2, 1), (3, 2, 2), (5, 4, 3)])
def test_voxel_has_the_statistics_of_the_windows_that_cover_it(windows, voxel):
    statistics = StreamingStatistics(SIZE)
    for start, window in zip(STARTS, windows, strict=True):
        statistics.update(window, start)
    samples = said_of(voxel, windows)
    torch.testing.assert_close(statistics.mean[:, :, *voxel], samples.mean(0))
    torch.testing.assert_close(statistics.entropy[:, *voxel], predictive_entropy(samples))
    information = mutual_information(samples)
    torch.testing.assert_close(statistics.mutual_information[:, *voxel], information, atol=1e-6, rtol=0)


def test_window_that_reaches_out_of_the_scan_is_refused(windows):
    statistics = StreamingStatistics(SIZE)
    with pytest.raises(ValueError, match="shape"):
        statistics.update(windows[0], (3, 0, 0))
