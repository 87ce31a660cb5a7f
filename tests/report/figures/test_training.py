"""Curves of trainings in two stages, and signs of health: what is drawn is what the history has."""

import json
from dataclasses import replace

import numpy as np
import pytest

from medssl.report import health_warnings, load_run, write_report
from medssl.report.figures.files import write_figures
from medssl.report.figures.health import health_records, training_health
from medssl.report.figures.training import stage_starts, training_curves


def two_stages(first_loss=1.0):
    """Forty steps of 'latent', then forty of 'posterior', validated every ten."""
    records = []
    for step in range(1, 81):
        latent = step <= 40
        stage = {"stage": "latent" if latent else "posterior"}
        signs = {"kl": 100.0 / step**2, "mse": 0.5, "latent_variance": 1.0, "latent_mean_spread": 0.3} if latent else {}
        loss = (first_loss if latent else 1.0) / step
        records.append({"kind": "step", "epoch": 1, "step": step, "loss": loss, "lr": 0.1, **stage, **signs})
        if step % 10 == 0:
            records.append({"kind": "validation", "epoch": 1, "step": step, "dice": step / 100, **stage})
        if step % 20 == 0 and latent:
            records.append({"kind": "health", "epoch": 1, "step": step, "pseudo_label_dice": step / 50, **stage})
    return records


@pytest.fixture
def staged(finished_run):
    return replace(load_run(finished_run), history=two_stages())


def marks(axes):
    """Where dashed vertical lines stand."""
    return [line.get_xdata()[0] for line in axes.lines if len(line.get_xdata()) == 2 and np.ptp(line.get_xdata()) == 0]


def words(axes):
    return [text.get_text() for text in axes.texts]


def test_both_panels_mark_where_the_second_stage_begins(staged):
    loss, validation, _ = training_curves(staged).axes
    for axes in (loss, validation):
        assert marks(axes) == [41]
        assert words(axes) == ["latent", "posterior"]
        assert [text.xy[0] for text in axes.texts][1] == 41


def test_no_line_joins_the_stages(staged):
    loss, validation, rate = training_curves(staged).axes
    for axes in (loss, validation, rate):
        spans = [(min(x), max(x)) for x in (line.get_xdata() for line in axes.lines) if len(x) > 2]
        assert spans and all(last <= 40 or first > 40 for first, last in spans)


def test_stages_of_different_orders_share_a_logarithmic_axis(staged):
    far_apart = replace(staged, history=two_stages(first_loss=1000.0))
    assert training_curves(far_apart).axes[0].get_yscale() == "log"
    assert training_curves(replace(staged, history=two_stages(0.5))).axes[0].get_yscale() == "linear"


def test_one_stage_is_not_marked(finished_run, staged):
    second_only = replace(staged, history=[r for r in staged.history if r["stage"] == "posterior"])
    for run in (load_run(finished_run), second_only):
        axes = training_curves(run).axes[0]
        assert marks(axes) == [] and words(axes) == []


def test_health_has_a_panel_for_every_sign_that_is_there_and_no_other(staged):
    signs = health_records(staged)
    panels = training_health(signs, stage_starts(staged)).axes

    assert list(signs) == ["kl", "mse", "latent_variance", "latent_mean_spread", "pseudo_label_dice"]
    assert [axes.get_title(loc="left") for axes in panels] == [
        "KL",
        "reconstruction error (MSE)",
        "latent variance",
        "spread of latent means between slices",
        "Dice of pseudo-labels, hidden labels",
    ]
    raw = panels[0].lines[0]
    assert raw.get_xdata().tolist() == list(range(1, 41))
    assert raw.get_ydata() == pytest.approx([100.0 / step**2 for step in range(1, 41)])
    assert panels[-1].lines[0].get_ydata() == pytest.approx([0.4, 0.8])


def test_collapse_is_visible_on_a_scale_that_shows_orders_or_zero(staged):
    kl, mse, *_ = training_health(health_records(staged), stage_starts(staged)).axes
    assert kl.get_yscale() == "log"
    assert mse.get_yscale() == "linear" and mse.get_ylim()[0] == 0


def test_signs_of_epochs_stand_in_for_those_of_steps_and_other_stages_are_left_out(staged):
    epochs = [
        {"kind": "epoch", "epoch": 1, "step": 40, "v_squared": 2.0, "stage": "latent"},
        {"kind": "epoch", "epoch": 2, "step": 80, "v_squared": 9.0, "stage": "posterior"},
    ]
    found = health_records(replace(staged, history=[*staged.history, *epochs]))
    assert [record["v_squared"] for record in found["v_squared"]] == [2.0]


def test_hidden_quality_in_both_stages_is_marked(staged):
    later = [
        {"kind": "validation", "epoch": 1, "step": step, "pseudo_label_dice": 0.5, "stage": stage}
        for step, stage in ((20, "latent"), (60, "posterior"))
    ]
    steps = [record for record in staged.history if record["kind"] == "step"]
    run = replace(staged, history=[*steps, *later])
    axes = training_health(health_records(run), stage_starts(run)).axes[-1]
    assert marks(axes) == [41] and words(axes) == ["latent", "posterior"]


@pytest.mark.parametrize(
    ("v_squared", "dimensions", "is_warned"),
    [
        (4.4, "32", False),
        (99, "32", False),
        (33_800, "32", True),
        (700, "256", False),
        (800, "256", True),
        (101, "", True),
    ],
)
def test_v_that_left_the_range_of_the_thesis_learning_rate_is_warned_of(make_run, v_squared, dimensions, is_warned):
    folder = make_run(rows=None, config={"latent::network_def::latent_dim": dimensions})
    lengths = {7: v_squared, 8: v_squared / 2}
    records = [
        {"kind": "step", "epoch": 1, "step": step, "stage": "latent", "loss": 1.0, "v_squared": lengths.get(step, 1.0)}
        for step in range(1, 11)
    ]
    (folder / "history.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    warnings, page = health_warnings(load_run(folder)), write_report(folder).read_text()
    assert len(warnings) == is_warned and ("--latent_learning_rate" in page) is is_warned
    if is_warned:
        assert f"v.v reached {v_squared:,.0f} at step 7" in warnings[0]


def test_report_shows_health_where_there_are_signs(make_run):
    folder = make_run(rows=None)
    assert "<h3>Health</h3>" not in write_report(folder).read_text()
    (folder / "history.jsonl").write_text("".join(json.dumps(record) + "\n" for record in two_stages()))
    assert "<h3>Health</h3>" in write_report(folder).read_text()
    assert {"training_curves.png", "health.png"} <= {path.name for path in write_figures(folder)}
