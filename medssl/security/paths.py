"""Where the texts of a configuration lead to."""

import re


def check_path(text: str) -> str | None:
    """What is wrong with a text if it is a path or an address; None if it stays in the bundle."""
    parts = re.split(r"[/\\]", text)
    if text.startswith(("/", "\\", "~")) or re.match(r"[A-Za-z]:[/\\]", text) or ".." in parts:
        return f"{text!r} leaves the bundle. Use a path relative to bundle_root."
    return f"{text!r} is a network address." if "://" in text else None
