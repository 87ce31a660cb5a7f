"""The command that runs a bundle is known to what it builds, just as MONAI understood it."""

import json
import shutil
import sys

import monai.bundle
import pytest
from monai.bundle import ConfigWorkflow

from medssl.bundle import Command, bundle_root, current_command, run_bundle
from medssl.bundle.command import parsed_value, started

MONAI = "/env/lib/python3.11/site-packages/monai/bundle/__main__.py"


@pytest.fixture
def typed(monkeypatch):
    """The command of these arguments behind `python -m monai.bundle`."""

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", [MONAI, *arguments])
        return current_command()

    return command


@pytest.fixture
def config_file(bundles_dir, tmp_path):
    """A small configuration whose run writes the command into the file `noted`."""
    file = tmp_path / "my_bundle" / "configs" / "train.json"
    file.parent.mkdir(parents=True)
    content = {
        "imports": ["$from pathlib import Path", "$import medssl.bundle as bundle"],
        "noted": str(tmp_path / "noted"),
        "seed": 0,
        "network_def": {"_target_": "torch.nn.Linear", "in_features": 2, "out_features": "@seed"},
        "widths": [1, 2],
        "copy": "%widths",
        "initialize": [],
        "run": ["$Path(@noted).write_text(repr(bundle.current_command()))"],
        "training": "%run",
        "finalize": [],
    }
    file.write_text(json.dumps(content))
    shutil.copy(bundles_dir / "gbdl" / "configs" / "logging.conf", file.parent)
    return file


def test_arguments_of_run_are_files_and_keys():
    command = Command.of_arguments(run_id="training", config_file=["a.json", "b.json"], tracking=None, labelled=4)
    assert command == Command(("a.json", "b.json"), {"labelled": 4}, "training")
    assert Command.of_arguments(config_file="a.json") == Command(("a.json",), {})
    assert Command.of_arguments(run_id="training") == Command((), {}, "training")


def test_file_of_arguments_gives_what_is_not_typed(tmp_path):
    file = tmp_path / "arguments.json"
    file.write_text(json.dumps({"config_file": "a.json", "labelled": 4, "seed": 1, "run_id": "training"}))
    command = Command.of_arguments(args_file=str(file), seed=2)
    assert command == Command(("a.json",), {"labelled": 4, "seed": 2}, "training")


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        (["--labelled", "4"], {"labelled": 4}),
        (["--labelled=0.25"], {"labelled": 0.25}),
        (["--stride", "[8,8,8]"], {"stride": [8, 8, 8]}),
        (["--stride=[8, 8, 8]"], {"stride": [8, 8, 8]}),
        (["--network_def#widths", "[4, 6]"], {"network_def#widths": [4, 6]}),
        (["--dataset_name", "phantom"], {"dataset_name": "phantom"}),
        (["--resume", "true"], {"resume": "true"}),
        (["--resume", "True"], {"resume": True}),
        (["--resume"], {"resume": True}),
        (["--target", "None"], {}),  # MONAI drops it
        (["--window", "[-100, 250]"], {"window": [-100, 250]}),
        (["--seed", "1", "--labelled", "4"], {"seed": 1, "labelled": 4}),
    ],
)
def test_command_line_is_read_as_monai_reads_it(typed, words, keys):
    assert typed("run", "training", "--config_file", "['a.json','b.json']", *words).keys == keys


@pytest.mark.parametrize("text", ["['a.json','b.json']", "['a.json', 'b.json']"])
def test_list_of_configuration_files_is_read_in_order(typed, text):
    assert typed("run", "training", "--config_file", text).config_files == ("a.json", "b.json")


def test_keys_are_what_monais_own_run_is_given(typed):
    """Its program, with `run` replaced by one that notes its arguments."""
    import fire

    words = ["run", "training", "--config_file", "['a.json','b.json']", "--stride=[8,8,8]", "--a#b", "1e-3", "--resume"]
    given = {}

    def run(run_id=None, config_file=None, **override):
        given.update(files=tuple(config_file), keys=override)

    fire.Fire({"run": run}, command=words)
    command = typed(*words)
    assert (command.config_files, command.keys) == (given["files"], given["keys"])


@pytest.mark.parametrize(
    "argv",
    [["/env/bin/medssl", "report", "run"], ["train.py", "run"], [MONAI, "verify_metadata"], [MONAI], [], ["-c"]],
)
def test_another_program_has_no_command(monkeypatch, argv):
    monkeypatch.setattr(sys, "argv", argv)
    assert current_command() is None


def test_run_bundle_notes_its_command_and_forgets_it(config_file, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["pytest"])
    run_bundle("training", [config_file], seed=5, widths=None)
    expected = Command((str(config_file),), {"seed": 5}, "training")
    assert (tmp_path / "noted").read_text() == repr(expected), "MONAI drops what is None"
    assert current_command() is None


def test_a_failing_run_is_forgotten_too(config_file, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["pytest"])
    with pytest.raises(RuntimeError):
        run_bundle("training", [config_file], run=["$1 / 0"])
    assert current_command() is None


def test_run_within_a_run_is_the_current_one_until_it_ends():
    outer, inner = Command(("outer.json",)), Command(("inner.json",))
    with started(outer):
        with started(inner):
            assert current_command() is inner
        assert current_command() is outer


def test_without_run_bundle_monais_run_tells_nobody(config_file, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["pytest"])
    monai.bundle.run(run_id="training", config_file=str(config_file))
    assert (tmp_path / "noted").read_text() == "None"


def test_configuration_is_what_monai_executes(config_file, tmp_path):
    overlay = tmp_path / "overlay.json"
    overlay.write_text(json.dumps({"network_def#in_features": 3, "+widths": [3]}))
    keys = {"seed": 5, "network_def#bias": False, "network_def::device": "cpu"}
    files = [str(config_file), str(overlay)]
    workflow = ConfigWorkflow(config_file=files, workflow_type="train", **keys)
    workflow.parser.parse()
    executed = {name: value for name, value in workflow.parser.get().items() if name != "_meta_"}
    config = Command(tuple(files), keys).config
    assert config == executed
    assert config["copy"] == [1, 2, 3] and config["network_def"]["in_features"] == 3
    assert config["network_def"]["out_features"] == "@seed", "references are not resolved"


@pytest.mark.parametrize("name", ["mcdropout_unet3d", "gbdl", "teacher_student", "np_match", "np_semiseg"])
def test_configuration_of_shipped_bundles_is_what_monai_executes(bundles_dir, name):
    files = tuple(str(bundles_dir / name / "configs" / file) for file in ("train.json", "smoke.json", "ddp.json"))
    workflow = ConfigWorkflow(config_file=list(files), workflow_type="train", seed=3, **{"train#inferer": None})
    workflow.parser.parse()
    executed = {name: value for name, value in workflow.parser.get().items() if name != "_meta_"}
    assert Command(files, {"seed": 3, "train#inferer": None}).config == executed


def test_bundle_is_the_folder_above_the_configs(config_file):
    assert Command((str(config_file),)).bundle_root == config_file.parents[1]
    assert Command(("train.json",)).bundle_root is None and Command(()).bundle_root is None


def test_a_copy_of_a_bundle_is_its_own_root(config_file, bundles_dir, tmp_path):
    with started(Command((str(config_file),))):
        assert bundle_root("gbdl") == str(bundles_dir / "gbdl"), "a folder without metadata is no bundle"
        (config_file.parent / "metadata.json").write_text("{}")
        assert bundle_root("gbdl") == str(config_file.parents[1])


def test_value_is_parsed_as_on_the_command_line():
    assert parsed_value("[4, 6]") == [4, 6] and parsed_value("0.5") == 0.5 and parsed_value("soft") == "soft"
