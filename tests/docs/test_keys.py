"""What `medssl explain` and the page of keys say is what the options of the bundles say."""

import importlib.util
import json
from pathlib import Path

from medssl.core.key_facts import STORED, key_facts

ROOT = Path(__file__).parents[2]
WIRING = {"imports", "data", "choices", "changes", "scans", "images", "train", "validate", "initialize", "run",
          "training", "first_stage", "second_stage", "finalize"}  # fmt: skip


def generator(name):
    """The module docs/generate/<name>.py."""
    spec = importlib.util.spec_from_file_location(f"generate_{name}", ROOT / "docs" / "generate" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_stored_keys_are_those_of_the_options():
    assert STORED.read_text(encoding="utf-8") == generator("keys").text(), "an option has changed: run `make keys`"


def test_every_bundle_and_every_key_that_a_train_json_lists_is_stored(bundles_dir):
    facts = key_facts()
    for train in bundles_dir.glob("*/configs/train.json"):
        bundle = train.parents[1].name
        stored = {fact.name for fact in facts if fact.bundle == bundle}
        assert set(json.loads(train.read_text())) - WIRING <= stored, bundle


def test_every_key_has_a_meaning_and_says_what_it_takes():
    for fact in key_facts():
        assert len(fact.meaning) > 2 and not fact.meaning.endswith("."), fact
        assert fact.kind, fact
