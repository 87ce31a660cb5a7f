"""Keys are explained: by bundle, with the default that the bundle has, and the nearest one for a mistyped key."""

import json
import shutil

import pytest

from medssl.core.errors import ConfigError
from medssl.core.key_facts import KeyFacts, default_text, explanation, find_key, key_facts


@pytest.fixture(scope="module")
def facts():
    return key_facts()


def test_default_is_that_of_train_json_where_it_lists_the_key(facts, bundles_dir):
    listed = json.loads((bundles_dir / "np_match" / "configs" / "train.json").read_text())
    (workers,) = [fact for fact in find_key("num_workers", facts) if fact.bundle == "np_match"]
    assert workers.default == listed["num_workers"] == 4
    (others,) = {fact.default for fact in find_key("num_workers", facts) if fact.bundle == "gbdl"}
    assert others == 2, "not listed: the option's own"


def test_default_of_an_edited_copy_is_its_own(bundles_dir, tmp_path):
    copy = shutil.copytree(bundles_dir / "gbdl", tmp_path / "mine")
    train = json.loads((copy / "configs" / "train.json").read_text())
    (copy / "configs" / "train.json").write_text(json.dumps({**train, "samples": 7}))
    (samples,) = find_key("samples", key_facts({"gbdl": copy}))
    assert samples.default == 7


@pytest.mark.parametrize("spelling", ["patch_size", "patch-size", "--patch_size", "patch_size#0"])
def test_key_is_known_in_every_spelling(facts, spelling):
    assert {fact.name for fact in find_key(spelling, facts)} == {"patch_size"}


def test_unknown_key_gets_the_nearest(facts):
    with pytest.raises(ConfigError, match=r"key 'lableled' is unknown\. Did you mean 'labelled'\?"):
        find_key("lableled", facts)


def test_bundles_with_one_meaning_are_told_together_and_limits_are_named(facts):
    text = explanation(find_key("batch_size", facts))
    assert text.count("batch_size: patches a step.") == 1
    assert "limits   at least 1" in text and "default  4 (gbdl, mcdropout_unet3d, teacher_student)" in text


def test_key_of_an_overlay_or_a_method_says_so(facts):
    assert "needs    --overlay scans" in explanation(find_key("slice_size", facts))
    assert "needs    --method mean_teacher" in explanation(find_key("ramp_up_share", facts))


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "none"), (True, "true"), ([8, 8, 8], "[8, 8, 8]"), ("gbdl", "gbdl"), ("", '""'),
     ("$@data.num_classes", "worked out: $@data.num_classes")],
)  # fmt: skip
def test_defaults_are_spelt_as_a_user_types_them(value, text):
    assert default_text(value) == text


def test_limits_are_bounds_or_choices():
    facts = {"name": "a", "bundle": "b", "meaning": "c", "part": "d"}
    assert KeyFacts(**facts).limits == ""
    assert KeyFacts(**facts, at_least=0, at_most=1).limits == "at least 0 and at most 1"
    assert KeyFacts(**facts, choices=("x", "y")).limits == "one of: x, y"
