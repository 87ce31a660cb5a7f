"""What each method is, in one row: its title, what it learns from, its views, and the losses that it records."""

import pytest
from methods.stages import STAGES, all_stages, built, first_batch

from medssl.methods.registry import find_method, method_names

# name: title, learns from unlabelled cases, views, recorded losses
ROWS = {
    "gbdl": ("GBDL", True, ("plain",), {"loss", "ce", "dice", "pseudo_ce", "pseudo_dice"}),
    "mean_teacher": ("Mean Teacher", True, ("weak", "strong"), {"loss", "ce", "dice", "consistency"}),
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
