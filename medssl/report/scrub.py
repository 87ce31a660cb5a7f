"""Text fit to be shared: without the paths and addresses of the machine it was made on."""

import re
import shlex
from pathlib import Path, PureWindowsPath
from typing import Any

FILE_SCHEMES = ("file", "sqlite")
_ADDRESS = re.compile(r"\b([a-zA-Z][a-zA-Z0-9+.-]*)://[^\s'\",;<>)\]}]*")
_START = r"(?:~?/|~?\\\\|[A-Za-z]:[\\/])"
_WHOLE_PATH = re.compile(rf"{_START}.*", re.DOTALL)
_QUOTED_PATH = re.compile(rf"(?<=['\"]){_START}[^'\"\n]*(?=['\"])")
_PATH = re.compile(rf"(?<![\w.…/\\~:'\"-])['\"]?{_START}[\w.@%+~-]+(?:[\\/][\w.@%+~-]*)*")


def without_paths(value: Any, folder: Path) -> Any:
    """The value with every absolute path cut to its last part, those in `folder` made relative to it.

    Addresses of servers become '(address)'. Lists and dicts are cleaned inside; other values come back as they are.
    """
    if isinstance(value, dict):
        return {key: without_paths(item, folder) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_paths(item, folder) for item in value]
    if not isinstance(value, str):
        return value
    text = _ADDRESS.sub(_short_address, value)
    if _WHOLE_PATH.fullmatch(text):
        return _short_path(text, folder)
    text = _QUOTED_PATH.sub(lambda match: _short_path(match[0], folder), text)
    return _PATH.sub(lambda match: _short_path(match[0], folder), text)


def command_without_paths(command: str, folder: Path) -> str:
    """A command line, each of its words (or the value of `--key=value`) cleaned like without_paths."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    return " ".join(_clean_word(word, folder) for word in words)


def _clean_word(word: str, folder: Path) -> str:
    key, equals, value = word.partition("=") if word.startswith("-") and "=" in word else ("", "", word)
    cleaned = str(without_paths(value, folder))
    return key + equals + (shlex.quote(cleaned) if _needs_quotes(cleaned) else cleaned)


def _needs_quotes(word: str) -> bool:
    return word == "" or any(character in word for character in " \t\n'\"\\$&|;<>()*?`")


def _short_address(match: re.Match[str]) -> str:
    scheme = match[1].lower()
    name = match[0].rsplit("/", 1)[-1]
    return f"…/{name}" if scheme in FILE_SCHEMES and name else "(address)"


def _short_path(text: str, folder: Path) -> str:
    """The path relative to the folder, or '…/' and its last part."""
    for root in (folder, folder.absolute(), folder.resolve()):
        if Path(text).is_relative_to(root):
            return str(Path(text).relative_to(root))
    name = PureWindowsPath(text.rstrip("/\\")).name
    return f"…/{name}" if name not in ("", "~") else "…"
