"""The command that runs a bundle: which files and keys MONAI was given, for what MONAI hands to nobody.

`python -m monai.bundle run training --config_file ... --key value` gives its parser to nothing that it builds. Its
command line says the same: it is read here once more, by the same Fire and the same parser. A Python program
starts a bundle with `run_bundle`, which notes what it gave.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import fire
import fire.parser
import monai.bundle
from monai.bundle.scripts import update_kwargs

from medssl.security.opening import running_config

# arguments of MONAI's `run` that are no keys of a configuration
_OF_RUN = {"run_id", "init_id", "final_id", "meta_file", "config_file", "logging_file", "tracking", "args_file"}


@dataclass(frozen=True)
class Command:
    """One call of MONAI's `run`: its configuration files, in order, and the keys given on top of them."""

    config_files: tuple[str, ...]
    keys: dict[str, Any] = field(default_factory=dict)
    run_id: str = "run"

    @classmethod
    def of_arguments(cls, **given: Any) -> "Command":
        """The command of these arguments of MONAI's `run`; an args_file holds what is not given."""
        arguments = update_kwargs(args=given.pop("args_file", None), **given)
        files = arguments.get("config_file") or ()
        files = [files] if isinstance(files, str | Path) else files
        keys = {name: value for name, value in arguments.items() if name not in _OF_RUN}
        return cls(tuple(str(file) for file in files), keys, str(arguments.get("run_id") or "run"))

    @cached_property
    def config(self) -> dict[str, Any]:
        """The configuration that MONAI executes, before references are resolved."""
        return running_config(self.config_files, self.keys)

    @property
    def bundle_root(self) -> Path | None:
        """The folder of the bundle whose files are run: that above the `configs` of the first file."""
        first = Path(self.config_files[0]) if self.config_files else None
        return first.parent.parent if first is not None and first.parent.name == "configs" else None


_started: ContextVar[Command | None] = ContextVar("command", default=None)


def current_command() -> Command | None:
    """The command that is being run: that of `run_bundle`, else of the command line; None in other programs."""
    return _started.get() or _of_command_line(tuple(sys.argv))


def run_bundle(run_id: str, config_files: Sequence[str | Path], **keys: Any) -> None:
    """Run a bundle in this process, as `python -m monai.bundle run RUN_ID --config_file ... --key value` does.

    A key that is None counts as not given: MONAI drops it.
    """
    command = Command.of_arguments(run_id=run_id, config_file=list(config_files), **keys)
    with started(command):
        monai.bundle.run(run_id=run_id, config_file=list(command.config_files), **keys)


@contextmanager
def started(command: Command) -> Iterator[None]:
    """Let `command` be the one that is being run."""
    token = _started.set(command)
    try:
        yield
    finally:
        _started.reset(token)


def parsed_value(text: str) -> Any:
    """What MONAI's command line makes of a value: a number, a list, a text."""
    return fire.parser.DefaultParseValue(text)


@cache
def _of_command_line(argv: tuple[str, ...]) -> Command | None:
    """The command of `python -m monai.bundle run ...`; None for any other program. Its files are read once."""
    program = Path(argv[0]) if argv else Path()
    is_monai = program.name == "__main__.py" and program.parent.name == "bundle"
    if not is_monai or len(argv) < 2 or argv[1] != "run":
        return None
    given: dict[str, Any] = {}

    def run(run_id: str | None = None, init_id: Any = None, final_id: Any = None, **arguments: Any) -> None:
        given.update(arguments, run_id=run_id)

    fire.Fire(run, command=list(argv[2:]))  # parses values as MONAI's own call of Fire does
    return Command.of_arguments(**given)
