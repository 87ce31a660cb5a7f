"""What the keys of the shipped bundles mean, without anything that takes long to import.

bundle_keys.json beside this file is written from the options of the bundles' parts by docs/generate/keys.py
(`make keys`); a test compares both.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medssl.core.errors import ConfigError
from medssl.core.options import unknown_name
from medssl.core.shipped_bundles import shipped_bundles

STORED = Path(__file__).with_name("bundle_keys.json")


@dataclass(frozen=True)
class KeyFacts:
    """A key of a bundle. part: what of the bundle reads it. overlay, method: what it takes for the key to be known."""

    name: str
    bundle: str
    meaning: str
    part: str
    kind: str = ""
    default: Any = None
    at_least: float | None = None
    at_most: float | None = None
    choices: tuple[str, ...] = ()
    overlay: str = ""
    method: str = ""

    @property
    def limits(self) -> str:
        """`at least 1`, `one of: memory, disk, none`, or nothing."""
        bounds = [("at least", self.at_least), ("at most", self.at_most)]
        texts = [f"{word} {limit:g}" for word, limit in bounds if limit is not None]
        return f"one of: {', '.join(self.choices)}" if self.choices else " and ".join(texts)

    @property
    def needs(self) -> str:
        """What a command must have for the key to be known, or nothing."""
        words = [("--overlay", self.overlay), ("--method", self.method)]
        return " ".join(f"{option} {value}" for option, value in words if value)


def key_facts(folders: dict[str, Path] | None = None) -> list[KeyFacts]:
    """All keys of the shipped bundles, with the defaults that their train.json lists.

    folders: name -> folder of the bundles to read instead, copies of shipped ones.
    """
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    facts = []
    for bundle, folder in (shipped_bundles() if folders is None else folders).items():
        for entry in stored.get(bundle, []):
            listed = _listed(folder, entry.get("overlay", ""))
            default = listed.get(entry["name"], entry.get("default"))
            choices = tuple(entry.get("choices", ()))
            facts.append(KeyFacts(**{**entry, "bundle": bundle, "default": default, "choices": choices}))
    return facts


def find_key(name: str, facts: Sequence[KeyFacts]) -> list[KeyFacts]:
    """What `name` means in each bundle that has it; ConfigError with the nearest key otherwise.

    `network_def#widths` is looked up as `network_def`.
    """
    top = name.lstrip("-+").replace("::", "#").split("#")[0].replace("-", "_")
    same = [fact for fact in facts if fact.name == top]
    if not same:
        known = {fact.name for fact in facts}
        text = unknown_name(top, known, "key", shown=8)
        raise ConfigError(f"{text} The page reference/keys of the documentation lists all.")
    return same


def explanation(facts: Sequence[KeyFacts]) -> str:
    """The text of `medssl explain`: a paragraph for each meaning of the key."""
    return "\n\n".join(_paragraph(group) for group in _by_meaning(facts))


def default_text(value: Any) -> str:
    """A default as a user would type it; what is worked out when a training starts is said to be."""
    if value is None:
        return "none"
    if isinstance(value, str) and value.startswith(("$", "@", "%")):
        return f"worked out: {value}"
    return str(value).lower() if isinstance(value, bool) else json.dumps(value) if value == "" else _plain(value)


def _paragraph(group: Sequence[KeyFacts]) -> str:
    first = group[0]
    lines = [f"{first.name}: {first.meaning}.", f"  value    {first.kind or 'see the card of the bundle'}"]
    if first.limits:
        lines.append(f"  limits   {first.limits}")
    for default, bundles in _bundles_by_default(group).items():
        lines.append(f"  default  {default} ({', '.join(bundles)})")
    if first.needs:
        lines.append(f"  needs    {first.needs}")
    return "\n".join(lines)


def _by_meaning(facts: Sequence[KeyFacts]) -> list[list[KeyFacts]]:
    groups: dict[tuple[str, ...], list[KeyFacts]] = {}
    for fact in facts:
        groups.setdefault((fact.meaning, fact.kind, fact.limits, fact.needs), []).append(fact)
    return list(groups.values())


def _bundles_by_default(facts: Sequence[KeyFacts]) -> dict[str, list[str]]:
    bundles: dict[str, list[str]] = {}
    for fact in facts:
        bundles.setdefault(default_text(fact.default), []).append(fact.bundle)
    return bundles


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _listed(folder: Path, overlay: str) -> dict[str, Any]:
    """The keys that train.json, and the overlay on top of it, list."""
    names = ["train", overlay] if overlay else ["train"]
    listed: dict[str, Any] = {}
    for name in names:
        file = folder / "configs" / f"{name}.json"
        if file.is_file():
            listed.update(json.loads(file.read_text(encoding="utf-8")))
    return listed
