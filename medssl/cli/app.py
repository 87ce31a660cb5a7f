"""The `medssl` command itself: what all of its commands share, and how they end."""

import sys

import typer
from rich.console import Console

from medssl.core.errors import MedsslError, error_behind

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
console = Console()
EXIT_BAD_DATA, EXIT_SOME_FAILED = 1, 3


def say(text: str) -> None:
    """Print a sentence as it is: paths are not coloured, brackets are no markup, lines are not folded."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def main() -> None:
    """Run the command; an error of medssl is printed as its text alone."""
    try:
        app()
    except (MedsslError, RuntimeError) as error:
        known = error_behind(error)  # MONAI wraps what is raised while a bundle is put together
        if known is None:
            raise
        print(f"{type(known).__name__}: {known}", file=sys.stderr)
        raise SystemExit(EXIT_BAD_DATA) from None
