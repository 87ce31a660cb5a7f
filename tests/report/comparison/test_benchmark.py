"""What a benchmark says of runs whose gain is known."""

import numpy as np
import pytest

from medssl.benchmark.tables import remarks, write_benchmark
from medssl.benchmark.verdict import UPPER_TITLE, benchmark_of, recommended, sentence

CASES = [f"case{number:02d}" for number in range(20)]


@pytest.fixture
def runs(run_of):
    """runs(gain): folders of supervised, BCP (better by `gain` of Dice) and the upper bound, with two seeds."""

    def build(gain, spread=0.02, gap=0.1):
        rng = np.random.default_rng(0)
        folders = []
        for seed in (0, 1):
            base = dict(zip(CASES, 0.7 + spread * rng.normal(size=len(CASES)), strict=True))
            noise = dict(zip(CASES, spread * rng.normal(size=len(CASES)) / 2, strict=True))
            facts = {"seed": seed, "labelled": 4, "split_hash": f"split{seed}"}
            better = {case: base[case] + gain + noise[case] for case in CASES}
            folders += [run_of("supervised", base, **facts).folder, run_of("BCP", better, **facts).folder]
            upper = {case: value + gap for case, value in base.items()}
            folders.append(run_of(UPPER_TITLE, upper, seed=seed, labelled=30, split_hash=f"split{seed}").folder)
        return folders

    return build


def test_a_clear_gain_is_recommended_with_its_interval(runs):
    benchmark = benchmark_of(runs(0.04))
    supervised, bcp = benchmark.results
    assert (supervised.method, bcp.method) == ("supervised", "BCP")
    assert bcp.is_better and bcp.difference == pytest.approx(4, abs=0.5) and bcp.seeds == 2 and bcp.cases == 20
    assert bcp.gap == pytest.approx(10) and bcp.gap_closed == pytest.approx(bcp.difference / 10)
    assert sentence(benchmark).startswith("With 4 labels, take BCP: +")
    assert recommended(benchmark, 4) == "BCP"


def test_without_a_clear_gain_supervised_is_recommended(runs):
    benchmark = benchmark_of(runs(0.0))
    assert not benchmark.results[1].is_better
    assert sentence(benchmark) == (
        "With 4 labels, none is clearly better than supervised training of the same compute: take that."
    )
    assert recommended(benchmark, 4) == "supervised"


def test_failed_scans_are_counted_against_the_baseline(runs, run_of):
    folders = runs(0.0)
    broken = dict.fromkeys(CASES, 0.7) | {CASES[0]: 0.1, CASES[1]: 0.34}
    folders.append(run_of("CPS", broken, seed=0, labelled=4, split_hash="split0").folder)
    by_name = {result.method: result for result in benchmark_of(folders).results}
    assert by_name["CPS"].failed == 2 and by_name["supervised"].failed == 0


@pytest.mark.parametrize(("gap", "is_told"), [(0.02, True), (0.1, False)])
def test_a_small_gap_is_told(runs, gap, is_told):
    texts = remarks(benchmark_of(runs(0.0, gap=gap)))
    assert any("little can be shown" in text for text in texts) == is_told


def test_tables_hold_the_sentence_the_command_and_every_row(runs, tmp_path):
    benchmark = benchmark_of(runs(0.04))
    page = write_benchmark(benchmark, tmp_path, "medssl benchmark data")
    text = page.read_text()
    assert "take BCP" in text and "medssl benchmark data" in text and text.count("| 4 |") >= 2
    rows = (tmp_path / "benchmark.csv").read_text().splitlines()
    assert len(rows) == 3 and rows[0].endswith("low,high")
