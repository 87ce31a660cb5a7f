"""What a logging.conf would run: logging.config evaluates the class and the arguments of every handler."""

import configparser
from collections.abc import Iterator
from pathlib import Path

_CLASSES = ("StreamHandler", "NullHandler", "Formatter", "logging.Formatter")
_ARGUMENTS = ("()", "(sys.stderr,)", "(sys.stdout,)")


def check_logging(path: Path) -> Iterator[str]:
    """Findings about one file."""
    parser = configparser.RawConfigParser()
    try:
        parser.read(path)
    except (configparser.Error, UnicodeDecodeError) as error:
        yield f"cannot be read ({type(error).__name__})."
    for section in parser.sections():
        values = dict(parser.items(section))
        if values.get("class", "StreamHandler") not in _CLASSES:
            yield f"{section}: class {values['class']!r}; only StreamHandler may be used."
        if values.get("args", "()").replace(" ", "") not in _ARGUMENTS:
            yield f"{section}: args {values['args']!r} would be evaluated; expected (sys.stderr,)."
        if values.get("kwargs", "{}") != "{}":
            yield f"{section}: kwargs {values['kwargs']!r} would be evaluated."
