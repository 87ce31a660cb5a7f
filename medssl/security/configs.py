"""What one configuration would run."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from monai.bundle import ConfigParser

from medssl.security.expressions import check_expression, imported_modules
from medssl.security.names import check_class_text
from medssl.security.paths import check_path
from medssl.security.special_keys import SWITCHES, check_key_text, check_special_key

_MACRO = re.compile(r"%\w+(?:::\w+)*")


def check_config(
    config: Any, modules: dict[str, set[str]] | None = None, with_paths: bool = True, with_names: bool = True
) -> list[str]:
    """Findings about one configuration, each `key: what is wrong`.

    modules: what the names of the bundle's import statements stand for. with_paths: plain texts may not lead out of the
    bundle; with_names: nor may they name code, or keys be other than plain. Neither is asked of descriptions and data.
    """
    modules = modules_of([config]) if modules is None else modules
    findings = []
    for key, value in leaves(config):
        problem = check_key_text(key) if with_names else None
        if problem is None:
            problem = check_special_key(_last_name(key), value)
        if problem is None and isinstance(value, str):
            problem = _check_text(_absolute(key, value), modules, with_paths, with_names)
        if problem is not None:
            findings.append(f"{key}: {problem}")
    return findings


def modules_of(configs: Iterable[Any]) -> dict[str, set[str]]:
    """Name -> modules that it may stand for, by the import statements of these configurations."""
    values = (value for config in configs for _, value in leaves(config))
    return imported_modules(value for value in values if isinstance(value, str))


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


def _check_text(text: str, modules: dict[str, set[str]], with_paths: bool, with_names: bool) -> str | None:
    if text.startswith("$"):
        return check_expression(text[1:], modules)
    if text.startswith("%"):
        return None if _MACRO.fullmatch(text) else f"{text!r} reads another file."
    problem = check_class_text(text) if with_names else None
    return problem or (check_path(text) if with_paths else None)
