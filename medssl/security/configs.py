"""What one configuration would run."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from monai.bundle import ConfigParser

from medssl.security.expressions import Surroundings, check_expression, imported_modules
from medssl.security.names import check_class_text
from medssl.security.paths import check_path
from medssl.security.special_keys import SWITCHES, check_key_text, check_special_key
from medssl.security.sums import check_folder

_TRAINING = re.compile(r"(?:\$\s*import\s+)?(?:medssl|natural_image_ext)\s*\.\s*bundle\b")
_MACRO = re.compile(r"%\w+(?:::\w+)*")


def check_config(
    config: Any, around: Surroundings | None = None, with_paths: bool = True, with_names: bool = True
) -> list[str]:
    """Findings about one configuration, each `key: what is wrong`.

    around: what all files of the bundle say, see `surroundings_of`. with_paths: plain texts may not lead out of the
    bundle; with_names: nor may they name code, or keys be other than plain. Neither is asked of descriptions and data.
    """
    around = surroundings_of([config]) if around is None else around
    findings = []
    for key, value in leaves(config):
        problem = check_key_text(key) if with_names else None
        if problem is None:
            problem = check_special_key(_last_name(key), value)
        if problem is None and isinstance(value, str):
            problem = _check_text(_absolute(key, value), around, with_paths, with_names)
        if problem is None and with_paths:
            problem = check_folder(key, value)
        if problem is not None:
            findings.append(f"{key}: {problem}")
    return findings


def check_no_training(config: Any) -> list[str]:
    """Findings about a configuration that predicts: it starts no training, and so names none of medssl.bundle."""
    return [
        f"{key}: {value!r} starts a training. Only train.json and its overlays may."
        for key, value in leaves(config)
        if isinstance(value, str) and _TRAINING.match(value)
    ]


def surroundings_of(configs: Iterable[Any]) -> Surroundings:
    """What these configurations say about the names in their expressions: modules imported, values of ids."""
    pairs = [pair for config in configs for pair in leaves(config)]
    definitions: dict[str, list[Any]] = {}
    for key, value in pairs:
        parts = [part.lstrip("+") for part in re.split(r"#|::", key) if part]
        definitions.setdefault("::".join(parts), []).append(value)
        for length in range(1, len(parts)):
            definitions.setdefault("::".join(parts[:length]), []).append([])  # a dict or list, no number
    return Surroundings(imported_modules(value for _, value in pairs if isinstance(value, str)), definitions)


def leaves(config: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(key, value) of everything that is no dict or list; dicts and lists too, where they are empty or a switch."""
    if not isinstance(config, dict | list) or (prefix and (not config or _last_name(prefix) in SWITCHES)):
        yield prefix, config
    if isinstance(config, dict | list):
        for key, value in config.items() if isinstance(config, dict) else enumerate(config):
            yield from leaves(value, f"{prefix}::{key}" if prefix else str(key))


def _last_name(key: str) -> str:
    """The key that a value stands at, in a list or not."""
    return next((part for part in reversed(re.split(r"#|::", key)) if not part.isdigit()), "").lstrip("+")


def _absolute(key: str, text: str) -> str:
    """The text as MONAI sees it when it stands at `key`: `@#a`, `%##a` are relative to that."""
    if not text.startswith(("$", "%")):
        return text
    try:
        return ConfigParser.resolve_relative_ids(key.replace("#", "::"), text)
    except ValueError:  # out of the configuration: MONAI refuses it
        return text


def _check_text(text: str, around: Surroundings, with_paths: bool, with_names: bool) -> str | None:
    if text.startswith("$"):
        return check_expression(text[1:], around)
    if text.startswith("%"):
        return _check_macro(text, around)
    problem = check_class_text(text) if with_names else None
    return problem or (check_path(text) if with_paths else None)


def _check_macro(text: str, around: Surroundings) -> str | None:
    """What is wrong with a macro: MONAI copies what it names, and copies of copies fill the memory."""
    if not _MACRO.fullmatch(text):
        return f"{text!r} reads another file."
    top = text.removeprefix("%").split("::")[0]
    for key, values in around.definitions.items():
        if key.split("::")[0] == top and any(isinstance(value, str) and value.startswith("%") for value in values):
            return f"{text!r} copies '{top}', which holds a copy itself. Name what is to be copied."
    return None
