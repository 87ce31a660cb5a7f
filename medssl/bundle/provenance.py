"""Where a run came from: its configuration in flat keys, its command, the commit of the source."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import medssl


def flatten(config: Any, prefix: str = "") -> dict[str, str]:
    """Nested configuration as `a::b::0` keys with short text values; lists of plain values stay in one piece."""
    if isinstance(config, dict):
        pairs = config.items()
    elif isinstance(config, list) and any(isinstance(item, dict | list) for item in config):
        pairs = enumerate(config)  # type: ignore[assignment]
    else:
        return {prefix: config if isinstance(config, str) else json.dumps(config, default=str)}
    flat: dict[str, str] = {}
    for key, value in pairs:
        flat |= flatten(value, f"{prefix}::{key}" if prefix else str(key))
    return flat


def command_line() -> str:
    """The command of this process as a user would type it, without the interpreter's path."""
    program = Path(sys.argv[0])
    name = "python -m monai.bundle" if program.parent.name == "bundle" else program.name
    return f"{name} {shlex.join(sys.argv[1:])}".strip()


def source_commit() -> str:
    """The git commit of medssl's source tree, with "+" if it has changes; "unknown" outside of a checkout."""
    try:
        import git  # noqa: PLC0415  (fails on a machine without git)
    except ImportError:
        return "unknown"
    try:
        # not the folders above it: a package installed inside of another project is not that project's commit
        repo = git.Repo(Path(medssl.__file__).parents[1])
        return repo.head.commit.hexsha[:12] + ("+" if repo.is_dirty() else "")
    except (git.InvalidGitRepositoryError, git.NoSuchPathError, ValueError, git.GitCommandError):
        return "unknown"
