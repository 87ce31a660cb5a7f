"""What a benchmark may yield, and that all of them are found."""

from types import SimpleNamespace

import pytest


def test_benchmarks_are_the_scripts_that_measure_something(benchmark):
    found = benchmark.benchmarks()
    assert {"surface_metrics", "scaling", "training_step", "data_pipeline", "product_kl"} <= set(found)
    assert not {"run", "table", "timing", "peak", "machine"} & set(found)


def test_rows_of_four_values_and_longer_ones_come_into_one_table_and_notes_below_it(benchmark, monkeypatch):
    short = SimpleNamespace(measure=lambda: [("claim a", "peer", 1.0, 2.0)])
    longer = SimpleNamespace(
        measure=lambda full: [("claim b", "peer", 1.0, 2.0, 1.5, 0.5, "full" if full else "short")],
        notes=lambda: ["a note"],
    )
    monkeypatch.setattr(benchmark.importlib, "import_module", {"short": short, "longer": longer}.get)
    monkeypatch.setattr(benchmark, "describe_machine", lambda: "a machine")
    text = benchmark.report(["short", "longer"], full=True)
    assert text.index("a machine") < text.index("| claim a |") < text.index("| claim b |") < text.index("a note")
    assert "yes | 4x (full) | 50% |" in text


def test_unknown_name_is_refused_with_the_known_ones(benchmark, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["run.py", "nothing"])
    with pytest.raises(SystemExit):
        benchmark.main()
    assert "surface_metrics" in capsys.readouterr().err
