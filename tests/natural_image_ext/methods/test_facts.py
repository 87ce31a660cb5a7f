"""What the methods on pictures and scenes say of themselves, as tables ask for it."""

from importlib.metadata import entry_points

import pytest

from medssl.methods.facts import MethodFacts
from medssl.methods.method import Method
from medssl.methods.registry import facts_of_title
from natural_image_ext.methods.classification import METHODS, recipe
from natural_image_ext.methods.facts import known_facts
from natural_image_ext.methods.segmentation import FRAMEWORKS, seg_recipe

TABLE_4_1 = ["MixMatch", "UDA", "FlexMatch", "UPS", "FixMatch", "NP-Match, KL", "NP-Match, JS", "NP-Match, dual JS"]


def test_pictures_stand_as_in_table_4_1_after_supervised_and_before_scenes():
    facts = known_facts()
    assert [each.title for each in facts if 200 <= each.place < 300] == TABLE_4_1
    assert [each.place for each in facts if 200 <= each.place < 300] == list(range(200, 208))
    supervised = [each for each in facts if each.place == 0]
    assert {each.title for each in supervised} == {
        "supervised",
        "supervised w/ MC dropout",
        "supervised w/ NP-SemiSeg",
    }
    assert facts[: len(supervised)] == supervised
    scenes = [each.title for each in facts if each.place >= 300]
    assert scenes[:4] == ["MT", "MT w/ MC dropout", "MT w/ NP-SemiSeg", "PS-MT"] and len(scenes) == 15


def test_no_title_and_no_place_is_given_twice():
    facts = known_facts()
    places = [each.place for each in facts if each.place > 0]
    assert len({each.title for each in facts}) == len(facts) and len(set(places)) == len(places)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("data_set", ["cifar100", "imagenet", "own"])
def test_recipe_of_a_picture_method_carries_facts_that_are_known(name, data_set):
    found = recipe(name, data_set, "kl")
    assert found.facts.title == found.title and found.facts in known_facts()
    assert found.facts.learns_from_unlabelled == (name != "supervised")
    assert issubclass(found.method, Method)


@pytest.mark.parametrize("name", FRAMEWORKS)
@pytest.mark.parametrize("head", ["plain", "dropout", "np"])
def test_recipe_of_a_framework_carries_facts_that_are_known(name, head):
    found = seg_recipe(name, "cityscapes", head)
    assert found.facts.title == found.title and found.facts in known_facts()
    assert found.facts.learns_from_unlabelled == (name != "supervised")
    assert issubclass(found.method, Method)


def test_views_are_those_a_method_learns_from():
    views = {facts.title: facts.views for facts in known_facts()}
    assert views["supervised"] == ("plain",) and views["MixMatch"] == ("weak",)
    assert views["FixMatch"] == views["CPS w/ NP-SemiSeg"] == ("weak", "strong")


def test_medssl_finds_them_by_its_entry_point():
    assert facts_of_title("np-match, DUAL JS") == MethodFacts("NP-Match, dual JS", True, 207, ("weak", "strong"))
    [entry] = entry_points(group="medssl.method_facts", name="natural_image_ext")
    assert entry.load() is known_facts
