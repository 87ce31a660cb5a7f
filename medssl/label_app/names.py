"""Names that come from outside, before they become part of a path: ids of studies, tags of labels, files."""

import re
from pathlib import Path

from medssl.core.errors import DataError

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_SEGMENT = re.compile(r"[A-Za-z0-9._,@-]{1,128}")


def is_name(text: str) -> bool:
    """Whether `text` may name a study or a tag: 1 to 64 letters, digits, dots, dashes, underscores; not only dots."""
    return _NAME.fullmatch(text) is not None and text.strip(".") != ""


def checked_name(text: str, what: str) -> str:
    """`text` if it is a name; DataError says what it should have named (the text itself is not repeated)."""
    if not is_name(text):
        raise DataError(f"{what}: expected 1 to 64 letters, digits, '.', '-' or '_'. Rename it.")
    return text


def is_plain_path(text: str) -> bool:
    """Whether every part of a relative path is plain: no dots alone, no encoded or control characters."""
    parts = text.removesuffix("/").split("/") if text else []
    return all(_SEGMENT.fullmatch(part) is not None and part.strip(".") != "" for part in parts)


def is_inside(path: str | Path, root: str | Path) -> bool:
    """Whether `path`, its links followed, lies below `root`."""
    return Path(root).resolve() in Path(path).resolve().parents
