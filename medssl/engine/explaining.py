"""How a training or a prediction ends when it fails: with one sentence, or with all there is to see."""

import logging
import sys
from types import TracebackType

from medssl.core.failure_text import EXIT_INTERRUPTED, failure_text, full_text
from medssl.core.flags import flag
from medssl.core.progress import give_sign_of_life


def explain_errors(debug: bool | None = None) -> None:
    """Let any error end the process with one sentence; with `debug` the traceback stands before it.

    debug: as the command line has it (`--debug true`) by default.
    """
    give_sign_of_life()  # every configuration begins here
    logging.getLogger("ignite").setLevel(logging.CRITICAL)
    with_traceback = _asked_by_command_line() if debug is None else debug

    def explain(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if with_traceback:
            print(full_text(error.with_traceback(trace)), failure_text(error, hint=""), sep="\n", file=sys.stderr)
        else:
            print(failure_text(error), file=sys.stderr, flush=True)
        if isinstance(error, KeyboardInterrupt):
            raise SystemExit(EXIT_INTERRUPTED)

    sys.excepthook = explain


def _asked_by_command_line() -> bool:
    """Whether `--debug`, `--debug true` or `--debug=true` is among the arguments of this process."""
    for place, argument in enumerate(sys.argv):
        name, has_value, value = argument.partition("=")
        if name != "--debug":
            continue
        following = sys.argv[place + 1] if place + 1 < len(sys.argv) else "true"
        text = value if has_value else following
        return text.startswith("--") or flag(text, "debug")
    return False
