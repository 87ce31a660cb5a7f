"""The page of all commands, from the command line itself."""

from collections.abc import Iterator
from typing import Any

import typer

from medssl.cli import app
from medssl.cli.tasks import EXAMPLES, SECTIONS

ABOUT = """# Commands

`medssl --help` lists the commands by task. `medssl COMMAND --help` prints what stands here.
Options are spelt with underscores, like the keys of bundles. Hyphens are accepted.
Every command also takes `--debug`, which shows the traceback of an error.

`medssl train` and `medssl evaluate` are short forms: they print the MONAI command that they stand for, then run it.
These MONAI commands have no short form:

| command | what it does |
|---|---|
| `python -m monai.bundle run predicting --config_file RUN/bundle/configs/inference.json --bundle_root RUN/bundle --dataset_dir SCANS` | stock MONAI prediction with the bundle of a run |
| `python -m monai.bundle run first_stage --config_file …/gbdl/configs/train.json`, then `run second_stage --resume true` | GBDL's stages one by one |
| `torchrun --nproc_per_node=N -m monai.bundle run training --config_file "['…/train.json','…/ddp.json']"` | several GPUs or machines |

A Python program starts a bundle with `medssl.bundle.run_bundle("training", [files], key=value)`.
MONAI's own `run` sees only the keys that train.json lists.

Exit codes: 0 all is well; 1 an error, or bad data; 2 a mistyped command; 3 some cases failed; 130 stopped by the user.
"""


def commands_page() -> str:
    """A section a task, a heading a command, with its help as it is printed."""
    root = typer.main.get_command(app)
    parts = [ABOUT]
    for section, names in SECTIONS.items():
        parts.append(f"## {section}\n")
        parts += [_entry(words, command, context) for name in names for words, command, context in _below(root, name)]
    return "\n".join(parts)


def _below(root: Any, name: str) -> Iterator[tuple[str, Any, Any]]:
    """The command `name`, or the commands of that group, with their contexts."""
    parent = root.context_class(root, info_name="medssl", terminal_width=100, max_content_width=100)
    command = root.commands[name]
    context = command.context_class(command, info_name=name, parent=parent)
    inner = getattr(command, "commands", None)
    if inner is None:
        yield name, command, context
        return
    for inner_name, inner_command in inner.items():
        inner_context = inner_command.context_class(inner_command, info_name=inner_name, parent=context)
        yield f"{name} {inner_name}", inner_command, inner_context


def _entry(words: str, command: Any, context: Any) -> str:
    return f"### medssl {words}\n\n```\n{EXAMPLES[words]}\n```\n\n```text\n{command.get_help(context)}\n```\n"
