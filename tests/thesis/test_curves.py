"""Figures of several runs in one plot have a line or a colour for each of them."""

from types import SimpleNamespace

import pytest

from medssl.thesis.curves import class_uncertainties, time_curves


def test_times_have_a_line_for_each_method_with_its_means():
    rows = {
        "MC dropout": [{"samples": float(t), "seconds": s} for t, s in ((1, 1.0), (1, 3.0), (5, 9.0))],
        "NP-Match": [{"samples": 1.0, "seconds": 1.0}, {"samples": 5.0, "seconds": 1.1}],
    }
    [axes] = time_curves(rows).axes
    assert [line.get_label() for line in axes.lines] == list(rows)
    assert axes.lines[0].get_ydata().tolist() == pytest.approx([2.0, 9.0])


def test_classes_of_all_label_amounts_are_in_one_plot():
    def run(shift):
        classes = {name: {"mean_uncertainty_nats": 0.5 - shift, "accuracy": 0.6 + shift} for name in ("cat", "dog")}
        return SimpleNamespace(measured={"classes": classes})

    [axes] = class_uncertainties({"40 labels": run(0.0), "250 labels": run(0.2)}).axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["40 labels", "250 labels"]
    ways = [line for line in axes.lines if line.get_marker() == "None"]
    assert len(ways) == 2 and list(ways[0].get_xdata()) == pytest.approx([0.5, 0.3])
    assert sorted(text.get_text() for text in axes.texts) == ["cat", "dog"]
