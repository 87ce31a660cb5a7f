"""What each method is, in one row: its title, what it learns from, its views, and the losses that it records."""

import pytest
from methods.stages import STAGES, all_stages, built, first_batch

from medssl.methods.registry import find_method, method_names

# name: title, learns from unlabelled cases, views, recorded losses
ROWS = {
    "gbdl": ("GBDL", True, ("plain",), {"loss", "ce", "dice", "pseudo_ce", "pseudo_dice"}),
    "mean_teacher": ("Mean Teacher", True, ("weak", "strong"), {"loss", "ce", "dice", "consistency"}),
    "ua_mt": ("UA-MT", True, ("weak", "strong"), {"loss", "ce", "dice", "consistency", "certain"}),
    "cps": ("CPS", True, ("weak", "strong"), {"loss", "ce", "dice", "second_loss", "cross"}),
    "fixmatch": ("FixMatch", True, ("weak", "strong"), {"loss", "ce", "dice", "unlabelled", "confident"}),
    "bcp": ("BCP", True, ("weak", "strong"), {"loss", "true", "pseudo"}),
    "pseudo_bank": ("iterated self-training", True, ("weak", "strong"), {"loss", "true", "pseudo"}),
    "noisy_student": ("noisy student", True, ("weak", "strong"), {"loss", "ce", "dice"}),
    "double_ua": (
        "Double-UA",
        True,
        ("weak", "strong"),
        {"loss", "ce", "dice", "consistency", "feature_consistency", "label_uncertainty", "feature_uncertainty"},
    ),
    "tripled_ua": ("Tripled-UA", True, ("weak",), {"loss", "ce", "dice", "tasks", "own_tasks", "consistency"}),
    "coranet": ("CoraNet", True, ("weak", "strong"), {"loss", "supervised", "certain", "on_certain", "consistency"}),
    "mc_net": ("MC-Net+", True, ("plain",), {"loss", "ce", "dice", "supervised", "consistency"}),
    "dtc": ("DTC", True, ("plain",), {"loss", "ce", "dice", "distances", "consistency"}),
    "sassnet": ("SASSNet", True, ("plain",), {"loss", "ce", "dice", "distances", "adversarial", "discriminator"}),
    "unimatch": (
        "UniMatch",
        True,
        ("weak", "strong"),
        {"loss", "ce", "dice", "first_view", "second_view", "dropped_features", "confident"},
    ),
    "lg_er_mt": (
        "LG-ER-MT",
        True,
        ("weak", "strong"),
        {"loss", "ce", "dice", "consistency", "local", "global", "entropy"},
    ),
    "reciprocal_learning": (
        "Reciprocal Learning",
        True,
        ("plain",),
        {"loss", "student", "supervised", "own", "feedback"},
    ),
    "graph_s2net": (
        "3D Graph-S2Net",
        True,
        ("weak", "strong"),
        {"loss", "ce", "dice", "joint", "distances", "consistency", "duality"},
    ),
    "supervised": ("supervised", False, ("plain",), {"loss", "ce", "dice"}),
}


def test_every_method_has_its_row():
    assert sorted(ROWS) == sorted(method_names())


@pytest.mark.parametrize("name", ROWS)
def test_method_is_as_its_row_says(name):
    title, learns, views, losses = ROWS[name]
    facts = find_method(name).facts
    assert (facts.title, facts.learns_from_unlabelled, facts.views) == (title, learns, views)
    last_stage = list(STAGES.get(name, {name: None}))[-1]
    _, build = all_stages()[last_stage]
    assert set(built(build).train()(first_batch(name))) == losses
