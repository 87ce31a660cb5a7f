"""A trained bundle prepares a scan exactly as its training did."""

import json
from dataclasses import replace

import pytest

from medssl.core.errors import ConfigError
from medssl.data.datasets import DATASETS, Target
from medssl.data.facts_json import facts_from_json, facts_to_json
from medssl.data.pipeline import Pipeline


@pytest.mark.parametrize("sizes", [{}, {"slice_size": [96, 96], "region_size": [64, 64], "patch_size": [32, 32, 8]}])
@pytest.mark.parametrize("name", sorted(DATASETS))
def test_facts_survive_json_with_the_sizes_of_the_training(name, sizes):
    target = Target({3: 1, 7: 2}, {1: "one", 2: "two"})
    trained = Pipeline(replace(DATASETS[name], target=target), **sizes)
    restored = facts_from_json(**json.loads(json.dumps(facts_to_json(trained))))
    assert restored.geometry == trained.geometry
    assert restored.window == trained.facts.window
    assert restored.target == target
    assert restored.num_classes == 3


def test_region_at_the_centre_is_kept_and_others_are_written_as_before():
    facts = replace(DATASETS["kits19"], target=Target({1: 1}, {1: "kidney"}))
    centred = facts_to_json(Pipeline(facts, region="centre"))
    assert centred["region"] == "centre" and Pipeline(facts_from_json(**centred)).is_centred
    assert "region" not in facts_to_json(Pipeline(facts))


def test_window_of_the_training_is_kept_where_the_data_set_has_another():
    facts = replace(DATASETS["kits19"], window=(-50.0, 150.0), target=Target({1: 1}, {1: "kidney"}))
    assert facts_from_json(**facts_to_json(Pipeline(facts))).window == (-50.0, 150.0)
    turned_off = replace(facts, window=None)
    assert facts_from_json(**facts_to_json(Pipeline(turned_off))).window is None


def test_name_alone_gives_the_published_facts():
    facts = facts_from_json("kits19")
    assert dict(facts.target.structures) == {1: "kidney and tumour"}
    assert facts.window == (-100.0, 250.0)


@pytest.mark.parametrize(("name", "message"), [("folder", "label_map"), ("nosuch", "Known")])
def test_names_that_say_too_little_are_refused(name, message):
    with pytest.raises(ConfigError, match=message):
        facts_from_json(name)
