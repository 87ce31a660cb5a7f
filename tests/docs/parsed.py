"""Command lines looked at without running them: do the options exist, do the keys, do the files?"""

import ast
import shlex

import click
import typer

from medssl import cli
from medssl.cli.app import spelt
from medssl.cli.values import keys_of
from medssl.core.key_facts import key_facts

APP = typer.main.get_command(cli.app)


def wrong_in(command: str, root) -> str:
    """What is wrong with a command line of medssl or MONAI; empty if nothing is."""
    words = shlex.split(command)
    if words[0] == "medssl":
        return _wrong_in_medssl(words[1:])
    if words[:2] == ["python", "-m"] and words[2] == "monai.bundle":
        return _wrong_in_monai(words, root)
    return ""


def _wrong_in_medssl(words: list[str]) -> str:
    group, context = APP, click.Context(APP, info_name="medssl", token_normalize_func=spelt)
    while hasattr(group, "commands"):
        if words[:1] in (["--help"], ["--version"]):
            return ""
        if words[0] not in group.commands:
            return f"there is no command {words[0]}"
        group, words = group.commands[words[0]], words[1:]
    if not words:
        return ""  # a sentence that names the command
    try:
        parsed = group.make_context(group.name, list(words), parent=context)
    except Exception as error:
        return str(error)
    bundle = parsed.params.get("bundle") or parsed.params.get("grid")
    return _unknown_keys(str(bundle), keys_of(parsed.args)) if parsed.args else ""


def _wrong_in_monai(words: list[str], root) -> str:
    keys = keys_of(words[5:])
    text = keys.pop("config_file")
    files = [root / file for file in (ast.literal_eval(text) if text.startswith("[") else [text])]
    missing = [file for file in files if not file.is_file()]
    return f"{missing[0]} does not exist" if missing else _unknown_keys(files[0].parents[1].name, keys)


def _unknown_keys(bundle: str, keys: dict[str, str]) -> str:
    known = {fact.name for fact in key_facts() if fact.bundle == bundle.rpartition("/")[2]}
    unknown = [key for key in keys if key.split("#")[0] not in known]
    return f"{bundle} has no key {unknown[0]}" if unknown else ""
