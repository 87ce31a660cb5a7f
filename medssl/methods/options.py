"""Options of a method: fields of a frozen dataclass, each with a default, a meaning and the values it may have."""

import dataclasses
import difflib
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from medssl.core.errors import ConfigError
from medssl.core.flags import flag
from medssl.methods.facts import Coefficient

Options = TypeVar("Options")


def option(
    default: Any,
    meaning: str,
    *,
    symbol: str = "",
    at_least: float | None = None,
    at_most: float | None = None,
    choices: Sequence[str] = (),
) -> Any:
    """A field of a method's options. meaning: one sentence, shown in the docs and in errors.

    symbol: of a coefficient that a sweep may vary, for matplotlib; without it the option is none. The limits count as
    allowed. A text is one of `choices` where there are any.
    """
    facts = {"meaning": meaning, "symbol": symbol, "at_least": at_least, "at_most": at_most, "choices": tuple(choices)}
    return dataclasses.field(default=default, metadata=facts)


def coefficients_of(options: type) -> dict[str, Coefficient]:
    """The options that a sweep may vary: those with a symbol."""
    return {
        field.name: Coefficient(field.metadata["symbol"], field.metadata["meaning"])
        for field in dataclasses.fields(options)
        if field.metadata.get("symbol")
    }


def make_options(kind: type[Options], given: Mapping[str, Any]) -> Options:
    """The options with `given` in place of defaults; None leaves a default.

    Raises ConfigError for a name that `kind` does not have, with the nearest it has, and for a value that it refuses.
    """
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    hints = typing.get_type_hints(kind)
    chosen = {}
    for name, value in given.items():
        if name not in fields:
            raise ConfigError(unknown_name(name, fields, "option"))
        if value is not None:
            chosen[name] = _checked(fields[name], hints[name], value)
    return kind(**chosen)


def unknown_name(name: str, known: Iterable[str], what: str) -> str:
    """The text of an error: `name` is no known `what`, and which one is nearest to it."""
    names = sorted(known)
    nearest = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    hint = f"Did you mean '{nearest[0]}'?" if nearest else f"Known: {', '.join(names) or 'none'}."
    return f"{what} '{name}' is unknown. {hint}"


def _checked(field: dataclasses.Field, hint: Any, value: Any) -> Any:
    """`value` as the field's type; ConfigError with name, finding and what is expected."""
    kind = _plain_type(hint)
    low, high, choices = (field.metadata.get(key) for key in ("at_least", "at_most", "choices"))
    if kind is bool:
        return flag(value, field.name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    whole = is_number and float(value).is_integer()
    if (kind is int and not whole) or (kind is float and not is_number) or (kind is str and not isinstance(value, str)):
        expected = {int: "a whole number", float: "a number", str: "a text"}[kind]
        raise ConfigError(f"{field.name} {value!r}: expected {expected} ({field.metadata.get('meaning', '')}).")
    if (low is not None and value < low) or (high is not None and value > high):
        between = " and ".join(
            text
            for text, limit in ((f"at least {low}", low), (f"at most {high}", high))
            if limit is not None
        )
        raise ConfigError(f"{field.name} {value}: expected {between} ({field.metadata['meaning']}).")
    if choices and value not in choices:
        raise ConfigError(f"{field.name} '{value}' is unknown. Choose {' or '.join(choices)}.")
    return kind(value) if kind in (int, float) else value


def _plain_type(hint: Any) -> Any:
    """`float` of `float | None`, and the like."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return next(part for part in typing.get_args(hint) if part is not type(None))
    return hint
