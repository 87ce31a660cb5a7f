"""The help groups commands by task and gives an example of each that the command takes."""

import shlex

import click
import pytest
import typer
from typer.testing import CliRunner

from medssl import cli
from medssl.cli.tasks import EXAMPLES, SECTIONS

APP = typer.main.get_command(cli.app)


def commands(group, path=()):
    """Words of a command -> the command, of all there are."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


ALL = dict(commands(APP))


def test_every_command_stands_in_one_section():
    sections = [name for names in SECTIONS.values() for name in names]
    assert sorted(sections) == sorted(APP.commands)


def test_help_has_a_section_for_each_task(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = CliRunner().invoke(cli.app, ["--help"]).stdout.splitlines()
    titles = [line.rstrip(":") for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert titles == ["Options", *SECTIONS]


@pytest.mark.parametrize("words", ALL)
def test_command_has_an_example_that_it_takes(words):
    program, *arguments = shlex.split(EXAMPLES[words])
    path = words.split()
    assert [program, *arguments[: len(path)]] == ["medssl", *path]
    ALL[words].make_context(words, arguments[len(path) :], parent=click.Context(APP, info_name="medssl"))


def test_no_example_is_of_a_command_that_is_not():
    assert set(EXAMPLES) == set(ALL)


def test_example_is_one_line_that_can_be_copied(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    text = CliRunner().invoke(cli.app, ["simulate-review", "rounds", "--help"]).stdout
    assert EXAMPLES["simulate-review rounds"] in text


def test_explain_prints_meaning_default_and_bundles():
    result = CliRunner().invoke(cli.app, ["explain", "samples", "--bundle", "gbdl"])
    assert result.exit_code == 0
    assert "samples: Monte Carlo samples" in result.stdout and "default  20 (gbdl)" in result.stdout
