"""Where a run came from: the configuration MONAI executes, the command, the source's commit."""

import inspect
import json
import shlex
import sys
from pathlib import Path
from typing import Any

import git
from monai.bundle import ConfigParser


def executing_config() -> dict[str, Any]:
    """The configuration (before references are resolved) that MONAI executes now, {} outside of a bundle.

    MONAI hands its parser to nothing it instantiates, so it is looked up on the call stack.
    """
    for frame in inspect.stack():
        parser = frame.frame.f_locals.get("self")
        if isinstance(parser, ConfigParser):
            return {key: value for key, value in parser.get().items() if key != "_meta_"}
    return {}


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
        repo = git.Repo(Path(__file__).parent, search_parent_directories=True)
        return repo.head.commit.hexsha[:12] + ("+" if repo.is_dirty() else "")
    except (git.InvalidGitRepositoryError, git.NoSuchPathError, ValueError, git.GitCommandError):
        return "unknown"
