"""What a user reads when a training or a prediction fails: one clear text, not MONAI's wrappers around it."""

import logging
import sys
import traceback
from types import TracebackType

from medssl.core.errors import error_behind


def explain_errors() -> None:
    """Let an error of medssl end the process with its one clear text."""
    logging.getLogger("ignite").setLevel(logging.CRITICAL)
    sys.excepthook = _explain


def _explain(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    known = error_behind(error)
    if known is None:
        traceback.print_exception(kind, error, trace)
    else:
        print(f"{type(known).__name__}: {known}", file=sys.stderr)
