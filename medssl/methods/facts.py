"""What a method says of itself: title and place in tables, whether it learns from unlabelled cases, what it needs."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from medssl.data.views import VIEWS

PLACE_OF_OTHERS = 1000  # methods that do not say where they stand come last, by name


@dataclass(frozen=True)
class Coefficient:
    """An option that a sweep may vary. symbol: for matplotlib. meaning: what it weighs or counts, in a few words."""

    symbol: str
    meaning: str


def coefficients_of(options: type) -> dict[str, Coefficient]:
    """The options of a method that a sweep may vary: those with a symbol."""
    return {
        option.name: Coefficient(option.metadata["symbol"], option.metadata["weighs"])
        for option in fields(options)
        if option.metadata.get("symbol")
    }


@dataclass(frozen=True)
class MethodFacts:
    """title: its name in tables. place: its place there, lowest first; equal ones stand by title.

    views: of a patch that it needs, some of VIEWS. coefficients: its options that a sweep may vary, by name.
    """

    title: str
    learns_from_unlabelled: bool
    place: int = PLACE_OF_OTHERS
    views: tuple[str, ...] = ("plain",)
    coefficients: Mapping[str, Coefficient] = field(default_factory=dict)

    def __post_init__(self) -> None:
        unknown = [view for view in self.views if view not in VIEWS]
        if unknown:
            raise ValueError(f"{self.title}: view '{unknown[0]}' is unknown. Known: {', '.join(VIEWS)}.")

    def to_json(self) -> dict[str, Any]:
        """What a run keeps of them in run.json, as `method_facts`."""
        return {**asdict(self), "views": list(self.views), "coefficients": _plain(self.coefficients)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "MethodFacts":
        """The facts of a stored run; keys that a newer medssl added are passed over."""
        coefficients = {name: Coefficient(**values) for name, values in stored.get("coefficients", {}).items()}
        known = {key: stored[key] for key in ("title", "learns_from_unlabelled", "place") if key in stored}
        return cls(**known, views=tuple(stored.get("views", ("plain",))), coefficients=coefficients)


def _plain(coefficients: Mapping[str, Coefficient]) -> dict[str, dict[str, str]]:
    return {name: asdict(coefficient) for name, coefficient in coefficients.items()}
