"""The beginning of a command without the rest of it: whether its files, keys and values would be taken."""

import contextlib
import io
import logging
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from monai.bundle import ConfigWorkflow

from medssl.bundle.command import Command, parsed_value, started
from medssl.core.errors import error_behind


def rehearse(run_id: str, files: Sequence[Path], keys: Mapping[str, str]) -> None:
    """Raise the error of medssl that the command would begin with; nothing is built, written or printed.

    keys: as they are typed. What `initialize` of the configuration says is done: for bundles that is `begin`.
    """
    values = {name: parsed_value(text) for name, text in keys.items()}
    names = [str(file) for file in files]
    hook = sys.excepthook
    try:
        with started(Command(tuple(names), values, run_id)), _quiet():
            ConfigWorkflow(config_file=names, logging_file=False, run_id=run_id, **values).initialize()
    except RuntimeError as error:
        known = error_behind(error)  # MONAI wraps what is raised by an expression
        if known is None:
            raise
        raise known from None
    finally:
        sys.excepthook = hook


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what MONAI logs and warns of, which the training itself says again."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.disable(before)
