"""A row says whether what was asked for is met, and how much of what is possible is reached."""

import pytest


def test_four_values_make_a_row_without_target_and_limit(benchmark):
    row = benchmark.Row("fast", "slow", 0.5, 2.0)
    assert row.ratio == 4.0 and row.share_of_limit is None
    assert row.cells() == ["fast", "slow", "0.5", "2", "4x", "", "", "", ""]


@pytest.mark.parametrize(("target", "met"), [(4.0, "yes"), (4.1, "no")])
def test_target_and_limit_are_ratios(benchmark, target, met):
    row = benchmark.Row("fast", "slow", 0.5, 2.0, target, 0.1, "physics")
    assert row.cells()[5:] == [f"{target:.3g}x", met, "20x (physics)", "20%"]


def test_table_has_a_line_for_each_row_and_as_many_cells_in_all_of_them(benchmark):
    rows = [benchmark.Row("a", "b", 1.0, 250.4), benchmark.Row("c", "d", 1.0, 2.0, 3.0)]
    lines = benchmark.markdown_table(rows).splitlines()
    assert len(lines) == 4 and {line.count("|") for line in lines} == {len(benchmark.TITLES) + 1}
    assert "| 250x |" in lines[2]
