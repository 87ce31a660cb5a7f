"""The slope is the exponent of the growth, and all series compute what they say."""

import pytest

from medssl.metrics import evaluate_masks


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0])
def test_slope_is_the_exponent(benchmark, exponent):
    assert benchmark.slope({size: 3.0 * size**exponent for size in (1, 5, 20)}) == pytest.approx(exponent, abs=1e-9)


@pytest.mark.parametrize(("exponent", "verdict"), [(1.0, "linear or better"), (1.2, "more than linear")])
def test_line_says_whether_it_is_linear(benchmark, exponent, verdict):
    line = benchmark.line("cost", {size: size**exponent for size in (1, 2, 4)})
    assert line.endswith(f"slope {exponent:.2f}, {verdict}.")


def test_cases_are_scored_one_by_one_with_the_same_result(benchmark):
    (alone,), many = benchmark.scoring(20)(), benchmark.scoring(20, 3)()
    assert many == [alone] * 3 and set(alone) == {"dice", "jaccard", "hd95", "asd", "assd"}
    assert evaluate_masks is benchmark.evaluate_masks


def test_sampling_covers_the_whole_scan(benchmark):
    found = benchmark.sampling(2, depth=24)()
    assert found.mean.shape == (1, 2, 64, 64, 24) and found.entropy.shape == (1, 64, 64, 24)
