"""The page of all commands, from the command line itself."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from medssl.cli import app
from medssl.cli.tasks import SECTIONS

HEAD = Path(__file__).with_name("commands_head.md")


def commands_page() -> str:
    """A section a task, a heading a command, with its help as it is printed."""
    root = typer.main.get_command(app)
    parts = [HEAD.read_text(encoding="utf-8")]
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
    return f"### medssl {words}\n\n```text\n{command.get_help(context)}\n```\n"
