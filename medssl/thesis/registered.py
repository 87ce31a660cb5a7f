"""Which of the thesis' methods can be trained here: asked of the registry, so that new ones count."""

from functools import cache

from medssl.core.key_facts import key_facts
from medssl.core.shipped_bundles import shipped_bundles
from medssl.methods.registry import method_names
from medssl.methods.variants import VARIANTS
from medssl.thesis.contents import ThesisMethod


def is_registered(method: ThesisMethod) -> bool:
    """True where the bundle is there and takes each of the method's keys with its value."""
    return method.bundle in shipped_bundles() and all(_takes(method.bundle, *pair) for pair in method.keys.items())


def _takes(bundle: str, key: str, value: object) -> bool:
    """True where the bundle knows the key and, if only certain values are possible, this one."""
    known = _choices(bundle)
    return key in known and (not known[key] or str(value) in known[key])


@cache
def _choices(bundle: str) -> dict[str, frozenset[str]]:
    """Key -> its possible values, of a bundle; empty where any value is possible."""
    choices = {facts.name: frozenset(facts.choices) for facts in key_facts() if facts.bundle == bundle}
    if bundle == "gbdl":
        choices["variant"] = frozenset(VARIANTS)
    if bundle == "teacher_student":
        choices["method"] = frozenset(method_names())
    return choices
