"""Tasks by name: the segmentation of scans, and what other packages add with the entry points `medssl.tasks`."""

import importlib.metadata
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from medssl.core.errors import ConfigError, DataError, MedsslError
from medssl.report.run import Task
from medssl.report.segmentation import SEGMENTATION

GROUP = "medssl.tasks"
INSTALL = 'Runs on pictures and scenes need: pip install "medssl[natural]".'


def task_of(facts: Mapping[str, Any], file: Path) -> Task:
    """The task of a run with these facts; without one named there, the segmentation of scans.

    Raises, naming `file`, DataError for a name that nobody knows, ConfigError where what it needs is not installed.
    """
    name = str(facts.get("task", SEGMENTATION.name))
    try:
        task = find_task(name)
    except (ImportError, MedsslError) as error:
        raise ConfigError(f"{file}: task '{name}' cannot be loaded here ({error}). {INSTALL}") from error
    if task is None:
        raise DataError(f"{file}: task '{name}' is unknown. Was it written by a newer medssl? {INSTALL}")
    return task


@cache
def find_task(name: str) -> Task | None:
    """The task of this name, None where there is none. What loading it raises is passed on."""
    if name == SEGMENTATION.name:
        return SEGMENTATION
    for entry in importlib.metadata.entry_points(group=GROUP, name=name):
        return entry.load()
    return None
