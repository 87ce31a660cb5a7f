"""What the files of a bundle would run."""

import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from medssl.core.bundle_folder import bundle_folder
from medssl.security.configs import check_config, check_no_training, leaves, surroundings_of
from medssl.security.logging_conf import check_logging

_NO_BUNDLE_FILES = {".py", ".pyc", ".so", ".sh", ".pkl", ".pickle", ".ts", ".yaml", ".yml", ".npy", ".npz"}
_LARGEST_BYTES = 1_000_000
_CHECKED_BUNDLES = 64


def check_bundle(folder: str | Path) -> list[str]:
    """Findings about a bundle, or that of a run, each `file: key: what is wrong`; an empty list if it may be run."""
    root = bundle_folder(folder)
    files = tuple(sorted(root.rglob("*")))
    states = tuple((path.lstat().st_mtime_ns, path.lstat().st_size) for path in files)
    return list(_findings(root, files, states))


@lru_cache(_CHECKED_BUNDLES)
def _findings(root: Path, files: tuple[Path, ...], states: tuple[tuple[int, int], ...]) -> tuple[str, ...]:
    """The findings; those of files that did not change (`states`: when they were written, how long) are known."""
    configs = [path for path in files if path.suffix == ".json" and path.is_file()]
    findings = [] if configs else [f"{root}: no configuration to check. Expected configs/*.json."]
    findings += [f"{path.relative_to(root)}: {problem}" for path in files for problem in _check_kind(path)]
    contents: dict[Path, Any] = {}
    for path in configs:
        try:
            contents[path] = _content(path)
        except (ValueError, OSError, RecursionError) as error:
            findings.append(f"{path.relative_to(root)}: cannot be read ({error}).")
    around = surroundings_of(contents.values())
    for path, content in contents.items():
        # a description quotes addresses, and what lies elsewhere are records of predictions
        is_config = path.name != "metadata.json" and (path.parent.name == "configs" or path.parent == root)
        problems = check_config(content, around, with_paths=is_config, with_names=is_config)
        problems += check_no_training(content) if path.name.endswith("inference.json") else []
        findings += [f"{path.relative_to(root)}: {problem}" for problem in problems]
    return tuple(findings)


def _check_kind(path: Path) -> Iterator[str]:
    if path.suffix.lower() in _NO_BUNDLE_FILES:
        yield "code or a format that can hold code has no place in a bundle."
    if path.is_symlink():
        yield "a link; a bundle holds its files itself."
    if path.suffix == ".conf" and path.is_file():
        yield from check_logging(path)


def _content(path: Path) -> Any:
    """The JSON of a file; ValueError where it is too long, RecursionError where it is nested too deeply."""
    size = path.stat().st_size
    if size > _LARGEST_BYTES:
        raise ValueError(f"{size} bytes, expected at most {_LARGEST_BYTES}")
    content = json.loads(path.read_text())
    if path.parent.name == "configs" and not isinstance(content, dict):
        raise ValueError(f"a {type(content).__name__}, expected a JSON object")
    list(leaves(content))
    return content
