"""A run knows the configuration, command and commit it came from."""

import json
import shutil
import sys

import pytest

import medssl
from medssl.bundle import Command, run_bundle
from medssl.bundle.command import started
from medssl.bundle.provenance import command_line, flatten, source_commit
from medssl.bundle.session import open_run
from medssl.data import Split


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


class NoNetwork:
    """A network without parameters."""

    def parameters(self):
        return []


def facts_of_run(folder):
    split = Split([{"id": "a", "patient": "a", "role": "labelled"}], {"dataset": "phantom"})
    return open_run(folder, {"bundle": "mine"}, split, NoNetwork()).facts()


def test_run_that_a_bundle_opens_keeps_the_configuration_being_executed(bundles_dir, tmp_path):
    configs = tmp_path / "mine" / "configs"
    configs.mkdir(parents=True)
    shutil.copy(bundles_dir / "gbdl" / "configs" / "logging.conf", configs)
    config = {
        "imports": ["$import medssl.bundle.session as session", "$import torch", "$import medssl.data as data"],
        "seed": 7,
        "other": "@seed",
        "_meta_": {"version": "1"},
        "run": ["$session.open_run(@folder, {'bundle': 'mine'}, data.Split([], {}), torch.nn.Linear(3, 2))"],
    }
    (configs / "train.json").write_text(json.dumps(config))
    run_bundle("run", [configs / "train.json"], folder=str(tmp_path / "run"))
    facts = json.loads((tmp_path / "run" / "run.json").read_text())
    assert facts["config"].pop("folder") == str(tmp_path / "run"), "keys of the command are in it"
    assert facts["config"] == {
        "imports": json.dumps(config["imports"]),
        "seed": "7",
        "other": "@seed",
        "run": json.dumps(config["run"]),
    }
    assert facts["bundle_root"] == str(tmp_path / "mine")


def test_outside_of_a_bundle_there_is_no_configuration(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["pytest"])
    facts = facts_of_run(tmp_path / "run")
    assert facts["config"] == {} and facts["bundle_root"] is None


def test_a_bundle_is_named_by_its_whole_path_wherever_it_was_started(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine" / "configs").mkdir(parents=True)
    (tmp_path / "mine" / "configs" / "train.json").write_text("{}")
    with started(Command(("mine/configs/train.json",))):
        assert facts_of_run(tmp_path / "run")["bundle_root"] == str(tmp_path / "mine")


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
