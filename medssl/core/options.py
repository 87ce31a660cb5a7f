"""Options that users give by name: fields of a frozen dataclass, each with a default, a meaning and what it may be."""

import dataclasses
import difflib
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from medssl.core.errors import ConfigError
from medssl.core.flags import flag

Options = TypeVar("Options")
_EXPECTED = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


def option(
    default: Any,
    meaning: str,
    *,
    symbol: str = "",
    weighs: str = "",
    at_least: float | None = None,
    at_most: float | None = None,
    choices: Sequence[str] = (),
    length: int | None = None,
    incidental: bool = False,
    place: bool = False,
) -> Any:
    """A field of a dataclass of options. meaning: one sentence, shown in the docs and in errors.

    symbol: of a coefficient that a sweep may vary, for matplotlib, and what it `weighs` or counts, in a word or two;
    without a symbol the option is no coefficient. The limits count as allowed. A text is one of `choices` where there
    are any. length: of a list. incidental: runs may differ in it and still be the same experiment. place: it says where
    a run reads and writes, so that it is incidental and means nothing to another run.
    """
    facts = {
        "meaning": meaning,
        "symbol": symbol,
        "weighs": weighs,
        "at_least": at_least,
        "at_most": at_most,
        "choices": tuple(choices),
        "length": length,
        "incidental": incidental or place,
        "place": place,
    }
    return dataclasses.field(default=default, metadata=facts)


def names_of(*kinds: type) -> list[str]:
    """The names of all options of these dataclasses, in their order, each once."""
    return list(dict.fromkeys(field.name for kind in kinds for field in dataclasses.fields(kind)))


def marked(kind: type, mark: str) -> list[str]:
    """The names of the options with a mark: incidental, place or symbol."""
    return [field.name for field in dataclasses.fields(kind) if field.metadata.get(mark)]


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


def unknown_name(name: str, known: Iterable[str], what: str, shown: int | None = None) -> str:
    """The text of an error: `name` is no known `what`, and which one is nearest to it.

    shown: how many of the known ones are listed at most where none is near, those that are most alike; default: all.
    """
    names = sorted(known)
    nearest = nearest_name(name, names)
    if nearest:
        hint = f"Did you mean '{nearest}'?"
    elif shown is not None and len(names) > shown:
        alike = difflib.get_close_matches(name, names, n=shown, cutoff=0.0)
        hint = f"The nearest of {len(names)}: {', '.join(alike)}."
    else:
        hint = f"Known: {', '.join(names) or 'none'}."
    return f"{what} '{name}' is unknown. {hint}"


def nearest_name(name: str, known: Iterable[str]) -> str:
    """The known name that `name` was meant to be, by its letters; empty where none is near."""
    return next(iter(difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)), "")


def _checked(field: dataclasses.Field, hint: Any, value: Any) -> Any:
    """`value` as the field's type; ConfigError with name, finding and what is expected."""
    kinds = _plain_kinds(hint)
    if bool in kinds:
        return flag(value, field.name)
    if list in kinds:
        return _checked_list(field, hint, value)
    if not kinds & {int, float, str}:
        return value  # of a type that no text can have: what gets it checks it
    if not _is_of_kind(value, kinds):
        named = kinds - {int} if float in kinds else kinds  # a whole number is a number
        expected = " or ".join(_EXPECTED[kind] for kind in (int, float, str) if kind in named)
        raise ConfigError(f"{field.name} {value!r}: expected {expected} ({field.metadata.get('meaning', '')}).")
    _refuse_outside(field, value)
    if isinstance(value, str) or {int, float} <= kinds:
        return value
    return int(value) if int in kinds else float(value)


def _is_of_kind(value: Any, kinds: set) -> bool:
    if isinstance(value, str):
        return str in kinds
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and (float in kinds or (int in kinds and float(value).is_integer()))


def _refuse_outside(field: dataclasses.Field, value: Any) -> None:
    """ConfigError for a number beyond the field's limits, or a text that is none of its choices."""
    low, high, choices = (field.metadata.get(key) for key in ("at_least", "at_most", "choices"))
    limits = [text for text, limit in ((f"at least {low}", low), (f"at most {high}", high)) if limit is not None]
    too_low = low is not None and value < low
    too_high = high is not None and value > high
    if too_low or too_high:
        raise ConfigError(f"{field.name} {value}: expected {' and '.join(limits)} ({field.metadata['meaning']}).")
    if choices and value not in choices:
        raise ConfigError(f"{unknown_name(str(value), choices, field.name)}")


def _checked_list(field: dataclasses.Field, hint: Any, value: Any) -> list:
    """`value` as a list of numbers; the texts "8,8,8" and "[8, 8, 8]" are lists too."""
    if isinstance(value, str):
        parts = value.strip("[]() ").split(",")
        try:
            value = [float(part) if "." in part or "e" in part else int(part) for part in parts]
        except ValueError:
            value = None
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    kinds = _kinds_of_items(hint)
    if not is_list or not all(_is_of_kind(item, kinds) for item in value):
        expected = "numbers such as 8,8,8" if float in kinds else "whole numbers such as 8,8,8"
        raise ConfigError(f"{field.name}: expected {expected} ({field.metadata['meaning']}).")
    length = field.metadata.get("length")
    if length is not None and len(value) != length:
        shown = ",".join(str(item) for item in value)
        raise ConfigError(
            f"{field.name} {shown}: {len(value)} numbers, expected {length} ({field.metadata['meaning']})."
        )
    for item in value:
        _refuse_outside(field, item)
    return list(value) if float in kinds else [int(item) for item in value]


def _kinds_of_items(hint: Any) -> set:
    """{int} of `list[int] | None`."""
    is_list = typing.get_origin(hint) is list
    kind = hint if is_list else next(part for part in typing.get_args(hint) if typing.get_origin(part) is list)
    return set(typing.get_args(kind))


def _plain_kinds(hint: Any) -> set:
    """{float} of `float | None`, {list} of `list[int] | None`, and the like."""
    is_union = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    parts = typing.get_args(hint) if is_union else (hint,)
    return {typing.get_origin(part) or part for part in parts if part is not type(None)}
