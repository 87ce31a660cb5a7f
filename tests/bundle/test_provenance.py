"""A run knows the configuration, command and commit it came from."""

import shutil
import sys

import pytest
from medssl.engine.provenance import command_line, executing_config, flatten, source_commit
from monai.bundle import ConfigParser

import medssl

SEEN: list[dict] = []


def note_config() -> str:
    SEEN.append(executing_config())
    return "done"


def test_nested_configuration_becomes_flat_keys_with_text_values():
    config = {
        "seed": 0,
        "text": "a",
        "none": None,
        "widths": [4, 8],
        "train": {"optimizer": {"_target_": "Adam", "lr": 1e-4}},
        "handlers": [{"_target_": "A"}, {"_target_": "B", "on": True}],
        "empty": {},
    }
    assert flatten(config) == {
        "seed": "0",
        "text": "a",
        "none": "null",
        "widths": "[4, 8]",
        "train::optimizer::_target_": "Adam",
        "train::optimizer::lr": "0.0001",
        "handlers::0::_target_": "A",
        "handlers::1::_target_": "B",
        "handlers::1::on": "true",
    }


def test_expression_of_a_bundle_sees_the_configuration_being_executed():
    SEEN.clear()
    config = {"seed": 7, "other": "@seed", "note": "$note_config()", "_meta_": {"version": "1"}}
    parser = ConfigParser(config, globals={"note_config": note_config})
    assert parser.get_parsed_content("note") == "done"
    assert SEEN == [{"seed": 7, "other": "@seed", "note": "$note_config()"}]


def test_outside_of_a_bundle_there_is_no_configuration():
    assert executing_config() == {}


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["/env/lib/monai/bundle/__main__.py", "run", "training", "--labelled", "4"],
         "python -m monai.bundle run training --labelled 4"),
        (["/env/lib/monai/bundle/__main__.py", "run", "--config_file", "['a.json','b.json']"],
         """python -m monai.bundle run --config_file '['"'"'a.json'"'"','"'"'b.json'"'"']'"""),
        (["/home/someone/env/bin/medssl", "report", "my run"], "medssl report 'my run'"),
        (["train.py"], "train.py"),
    ],
)  # fmt: skip
def test_command_is_shown_without_the_paths_of_the_machine(monkeypatch, argv, expected):
    monkeypatch.setattr(sys, "argv", argv)
    assert command_line() == expected


def test_commit_is_that_of_the_checkout(tmp_path, monkeypatch):
    import git

    repo = git.Repo.init(tmp_path)
    package = tmp_path / "medssl" / "__init__.py"
    package.parent.mkdir()
    package.write_text("")
    repo.index.add([str(package)])
    sha = repo.index.commit("one", author=git.Actor("a", "a@b"), committer=git.Actor("a", "a@b")).hexsha
    monkeypatch.setattr(medssl, "__file__", str(package))
    assert source_commit() == sha[:12]
    package.write_text("changed = 1\n")
    assert source_commit() == sha[:12] + "+"
    installed = tmp_path / ".venv" / "lib" / "site-packages" / "medssl" / "__init__.py"
    shutil.copytree(package.parent, installed.parent)
    monkeypatch.setattr(medssl, "__file__", str(installed))
    assert source_commit() == "unknown", "the commit of the project around it is not medssl's"


def test_without_a_checkout_or_without_git_the_commit_is_unknown(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "git", None)
        assert source_commit() == "unknown"
    monkeypatch.setattr(medssl, "__file__", str(tmp_path / "medssl" / "__init__.py"))
    assert source_commit() == "unknown"
