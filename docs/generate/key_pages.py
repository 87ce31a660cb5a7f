"""The page of all keys, from the options of the bundles' parts."""

from medssl.core.key_facts import KeyFacts, default_text, key_facts

ABOUT = """# Keys of the bundles

A key is a setting of a training. Give it as `medssl train gbdl --labelled 16`, or add `--labelled 16` to MONAI's
command. An unknown key is refused, and the message names the nearest known one. `medssl explain KEY` prints what this
page says.

The default is the value in the bundle's train.json. If train.json does not list the key, the default is the option's
own. "none" means that no value is given; the meaning then says what happens. "worked out" means that the training
finds the value when it starts. A nested key changes one argument: `--network_def#widths "[16, 32, 64]"`.
"""


def keys_page() -> str:
    """A table a bundle."""
    facts = key_facts()
    bundles = dict.fromkeys(fact.bundle for fact in facts)
    return ABOUT + "".join(_table(bundle, [fact for fact in facts if fact.bundle == bundle]) for bundle in bundles)


def _table(bundle: str, facts: list[KeyFacts]) -> str:
    rows = "\n".join(_row(fact) for fact in facts)
    return f"\n## {bundle}\n\n| key | meaning | value | default | limits |\n|---|---|---|---|---|\n{rows}\n"


def _row(fact: KeyFacts) -> str:
    meaning = f"{fact.meaning} (needs `{fact.needs}`)" if fact.needs else fact.meaning
    return f"| `{fact.name}` | {meaning} | {fact.kind} | {_default(fact)} | {fact.limits} |"


def _default(fact: KeyFacts) -> str:
    if fact.kind == "a part of the configuration":
        return "see train.json"
    text = default_text(fact.default)
    if text.startswith("worked out"):
        return "worked out"
    return text if text == "none" else f"`{text}`"
