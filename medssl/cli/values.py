"""What the texts on a command line stand for."""

import re

from medssl.cli.app import spelt
from medssl.core.errors import ConfigError


def keys_of(extra: list[str]) -> dict[str, str]:
    """The keys of a bundle among further arguments: `--key value`, `--key=value`, or `--key` alone, which is true."""
    keys: dict[str, str] = {}
    waiting: str | None = None
    for argument in extra:
        if re.match(r"--[^\d]", argument):
            name, has_value, value = argument[2:].partition("=")
            waiting = None if has_value else _spelt_key(name)
            keys[_spelt_key(name)] = value if has_value else "true"
        elif waiting is None:
            raise ConfigError(f"'{argument}': expected keys of train.json as --key value, e.g. --labelled 16.")
        else:
            keys[waiting] = argument
            waiting = None
    return keys


def _spelt_key(name: str) -> str:
    first, *deeper = re.split(r"(#|::)", name)
    return "".join([spelt(first), *deeper])


def numbers_of(text: str, option: str = "", example: str = "8,8,8") -> list[int]:
    """Whole numbers: of 8,8,8 and of [8, 8, 8]. option: its name, for the error."""
    inner = re.fullmatch(r"\s*[\[(]?([^\[\]()]*)[\])]?\s*", text)
    try:
        return [int(part) for part in inner.group(1).split(",")]  # type: ignore[union-attr]
    except (ValueError, AttributeError):
        named = f"--{option} '{text}'" if option else f"'{text}'"
        raise ConfigError(f"{named}: expected whole numbers separated by commas, e.g. {example}.") from None
