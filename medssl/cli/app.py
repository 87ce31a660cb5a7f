"""Train 3-D segmentation networks with few labels, see how sure they are, and review what needs a human first."""

import os
import sys
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperCommand, TyperGroup

import medssl
from medssl.cli.tasks import position, write_example, write_sections
from medssl.core.failure_text import failure_text

console = Console()
EXIT_BAD_DATA, EXIT_SOME_FAILED, EXIT_STOPPED = 1, 3, 130
KEYS = {"allow_extra_args": True, "ignore_unknown_options": True}  # of a command that takes keys of a bundle, too
_OLD_NAMES = {"dataset": "dataset_name", "output": "output_dir"}


def spelt(name: str) -> str:
    """The one spelling of an option: as the keys of bundles, `open_seconds`; hyphens and older names stand for it."""
    plain = name.replace("-", "_")
    return _OLD_NAMES.get(plain, plain)


class Command(TyperCommand):
    """A command whose options are spelt like the keys of bundles, and which ends quietly when a user stops it."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        for parameter in self.params:
            parameter.opts = [_in_help(name) for name in parameter.opts]
            parameter.secondary_opts = [_in_help(name) for name in parameter.secondary_opts]

    def parse_args(self, context: Any, arguments: list[str]) -> list[str]:
        try:
            return super().parse_args(context, arguments)
        except Exception as error:
            nearest = getattr(error, "possibilities", None)
            if nearest:
                error.possibilities = None  # type: ignore[attr-defined]
                error.message += f". Did you mean {' or '.join(nearest)}?"  # type: ignore[attr-defined]
            raise

    def format_epilog(self, context: Any, formatter: Any) -> None:
        write_example(context, formatter)

    def invoke(self, context: Any) -> Any:
        try:
            return super().invoke(context)
        except KeyboardInterrupt:
            print("Stopped.", file=sys.stderr)
            raise typer.Exit(EXIT_STOPPED) from None


def _in_help(name: str) -> str:
    return f"--{name[2:].replace('-', '_')}" if name.startswith("--") else name


class Commands(typer.Typer):
    """Commands of one habit."""

    def __init__(self, **settings: Any) -> None:
        names = {"token_normalize_func": spelt, "max_content_width": 110, "help_option_names": ["--help", "-h"]}
        super().__init__(
            no_args_is_help=True,
            add_completion=False,
            pretty_exceptions_enable=False,
            rich_markup_mode=None,  # the frames of rich leave the text 24 columns of 80
            context_settings=names,
            **settings,
        )

    def command(self, name: str | None = None, **settings: Any) -> Any:
        return super().command(name, cls=Command, **settings)


class _Group(TyperGroup):
    """Commands in the order that a user needs them, a section a task."""

    def list_commands(self, context: Any) -> list[str]:
        return sorted(self.commands, key=position)

    def format_commands(self, context: Any, formatter: Any) -> None:
        write_sections(self, context, formatter)


app = Commands(help=__doc__, cls=_Group)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"medssl {medssl.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show the traceback of an error, too."),
    ] = False,
) -> None:
    """Options that every command has; `main` reads --debug wherever it stands."""


def say(text: str) -> None:
    """Print a sentence as it is: paths are not coloured, brackets are no markup, lines are not folded."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def main() -> None:
    """Run the command; an error is printed as one sentence, with --debug as Python's traceback."""
    arguments, debug = _without_debug(sys.argv[1:])
    try:
        app(arguments)
    except BrokenPipeError:  # somebody closed the page that read our output
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(EXIT_BAD_DATA) from None
    except Exception as error:
        if debug:
            raise
        print(failure_text(error, hint="(--debug shows where it happened)"), file=sys.stderr)
        raise SystemExit(EXIT_BAD_DATA) from None


def _without_debug(arguments: list[str]) -> tuple[list[str], bool]:
    """The arguments without --debug, and whether it was there; commands of MONAI get it as a key of theirs."""
    others = [argument for argument in arguments if argument != "--debug"]
    debug = len(others) < len(arguments)
    command = next((argument for argument in others if not argument.startswith("-")), "")
    passed_on = ["--debug", "true"] if debug and command in ("train", "evaluate") else []
    return [*others, *passed_on], debug
