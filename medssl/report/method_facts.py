"""The facts of a run's method: those that the run stored, or what is known of its title."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from medssl.core.errors import DataError
from medssl.methods.facts import MethodFacts
from medssl.methods.registry import facts_of_title


def facts_of_method(facts: Mapping[str, Any], file: Path) -> MethodFacts:
    """The method facts of a run.json. Raises DataError, naming `file`, where they are damaged.

    Runs made before facts were stored have those of the method with their title. What nobody knows stands last in
    tables and is taken to learn from the unlabelled cases that its split has.
    """
    stored = facts.get("method_facts")
    if stored is None:
        title = str(facts["method"])
        return _known_by_title(title) or MethodFacts(title, learns_from_unlabelled=True)
    try:
        return MethodFacts.from_json(stored)
    except (AttributeError, TypeError, ValueError) as error:
        raise DataError(f"{file}: method_facts are damaged ({error}). Remove them, or train again.") from error


@cache
def _known_by_title(title: str) -> MethodFacts | None:
    """The facts of a title, or of what stands before one of its commas: 'supervised' of 'supervised, more steps'."""
    parts = title.split(", ")
    for count in range(len(parts), 0, -1):
        facts = facts_of_title(", ".join(parts[:count]))
        if facts is not None:
            return facts
    return None
