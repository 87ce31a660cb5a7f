"""Remembers what the check of unchanged files found, so that a second start does not read every scan again."""

import json
from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any

from medssl.core.files import write_text_atomically
from medssl.data.findings import Finding
from medssl.data.volumes import split_address

RULES = 2  # raise it whenever a check changes, so that older answers are not believed

CheckCache = dict[str, list[Finding]]


def load_cache(file: str | PathLike[str] | None) -> CheckCache:
    """Findings by stamp; empty where there is no file or it is damaged."""
    if file is None:
        return {}
    with suppress(OSError, ValueError, TypeError, AttributeError):
        stored = json.loads(Path(file).read_text(encoding="utf-8"))
        return {stamp: [Finding(**finding) for finding in findings] for stamp, findings in stored.items()}
    return {}


def save_cache(file: str | PathLike[str] | None, cache: CheckCache) -> None:
    """Writes the cache atomically; where that is not allowed, the next start just reads the scans again."""
    if file is not None:
        stored = {stamp: [asdict(finding) for finding in findings] for stamp, findings in cache.items()}
        with suppress(OSError):
            write_text_atomically(Path(file), json.dumps(stored, indent=1, sort_keys=True))


def stamp_of(case: dict[str, Any], label_ids: Collection[int] | None) -> str:
    """Fingerprint of all the check of a case depends on: its ids, role, and the size and time of its files."""
    ids = None if label_ids is None else sorted(label_ids)
    files = {key: _file_state(str(case[key])) for key in ("image", "label") if key in case}
    return sha256(json.dumps([RULES, ids, case.get("id"), case.get("role"), files]).encode()).hexdigest()


def _file_state(address: str) -> list[Any]:
    """Address with size and time of its file, or of every file of a DICOM folder; without them where it is missing."""
    path, _ = split_address(address)
    try:
        members = sorted(path.iterdir()) if path.is_dir() else [path]
        states = [(member.name, member.stat().st_size, member.stat().st_mtime_ns) for member in members]
    except OSError:
        states = []
    return [address, states]
