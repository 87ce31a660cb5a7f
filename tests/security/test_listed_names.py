"""The list of what a bundle may name is what our bundles, and those of before, name: no line less and none more."""

import ast
import json
import pydoc
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from medssl.security.configs import leaves, surroundings_of
from medssl.security.listed_names import MODULE_PACKAGES, OLD_NAMES, OUR_NAMES
from medssl.security.names import OUR_PACKAGES, check_name
from natural_image_ext.networks import Classifier, SegmentationNetwork

ROOT = Path(__file__).parents[2]
BUILDERS = {Classifier.builder, SegmentationNetwork.builder}  # written into an exported inference.json


def bundles() -> list[list[Any]]:
    """The configurations of each bundle of ours and of the old runs."""
    folders = sorted({path.parent for path in (*ROOT.glob("bundles/*/configs/*.json"), *old_configs())})
    return [[json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))] for folder in folders]


def old_configs() -> list[Path]:
    return list(ROOT.glob("tests/old_runs/*/bundle/configs/*.json"))


def names_in(configs: list[Any]) -> Iterator[str]:
    """What the targets and expressions of a bundle name, by its full name."""
    modules = surroundings_of(configs).modules
    for key, text in (pair for config in configs for pair in leaves(config)):
        if re.split(r"#|::", key)[-1] == "_target_" and "." in text:
            yield text
        elif isinstance(text, str) and text.startswith("$") and not text.startswith("$import "):
            tree = ast.parse(re.sub(r"@[\w#:]*", "reference", text[1:]), mode="eval")
            for node in ast.walk(tree):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                    yield from (f"{module}.{node.attr}" for module in modules.get(node.value.id, ()))


def test_list_holds_what_our_bundles_name_and_nothing_else():
    named = {name for configs in bundles() for name in names_in(configs)} | BUILDERS
    ours = {name for name in named if name.split(".")[0] in OUR_PACKAGES}
    networks = {name for name in ours - OUR_NAMES if name.startswith(MODULE_PACKAGES) and check_name(name) is None}
    missing, unneeded = ours - OUR_NAMES - networks, OUR_NAMES - OLD_NAMES - ours
    assert len(ours) > 40 and networks
    assert not missing, f"add to medssl/security/listed_names.py, if a stranger may call it: {sorted(missing)}"
    assert not unneeded, f"no bundle names it; take it out of medssl/security/listed_names.py: {sorted(unneeded)}"


def test_every_listed_name_exists():
    assert [name for name in sorted(OUR_NAMES) if pydoc.locate(name) is None] == []
