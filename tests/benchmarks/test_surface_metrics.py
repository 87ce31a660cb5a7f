"""All sides of the benchmark compute the same measures; no time is asserted."""

import importlib.util

import pytest

from medssl.metrics import evaluate_masks

SHAPE = (40, 36, 20)


@pytest.mark.parametrize("kind", ["near", "far too large", "elsewhere"])
def test_peers_say_the_same(benchmark, kind):
    masks = benchmark.pairs(SHAPE)[kind]
    ours = evaluate_masks(*masks, benchmark.SPACING_MM)
    monai = benchmark.monai_trio(*masks)
    assert {name: monai[name] for name in ("dice", "assd")} == pytest.approx(
        {name: ours[name] for name in ("dice", "assd")}, abs=1e-4
    )
    pytest.importorskip("medpy")
    assert benchmark.medpy_five(*masks) == pytest.approx(ours, abs=1e-6)


def test_every_kind_has_a_row_for_each_peer(benchmark):
    rows = list(benchmark.measure(SHAPE, repeats=1))
    peers = ["MONAI trio", "medpy"] if importlib.util.find_spec("medpy") else ["MONAI trio"]
    assert [row[1] for row in rows] == peers * 3
    assert {row[4] for row in rows} <= {30.0, 5.0} and "40x36x20, prediction near" in rows[0][0]
