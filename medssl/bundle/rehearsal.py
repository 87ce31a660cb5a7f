"""The beginning of a command without the rest of it: whether its files, keys and values would be taken."""

import contextlib
import io
import logging
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from medssl.bundle.command import Command, parsed_value, started
from medssl.core.errors import error_behind
from medssl.security.opening import parser_of


def rehearse(run_id: str, files: Sequence[Path], keys: Mapping[str, str]) -> None:
    """Raise the error of medssl that the command would begin with; nothing is built, written or printed.

    keys: as they are typed. What `initialize` of the configuration says is done: for bundles that is `begin`. The
    bundle must have passed the check of security.
    """
    values = {name: parsed_value(text) for name, text in keys.items()}
    command = Command(tuple(str(file) for file in files), values, run_id)
    hook = sys.excepthook
    try:
        with started(command), _quiet():
            parser = parser_of(command.config)
            for step in range(len(command.config.get("initialize", []))):
                parser.get_parsed_content(f"initialize#{step}")
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
