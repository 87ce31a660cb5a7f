"""One habit for all commands: spelling, help, mistakes, and the short forms of MONAI's command."""

import json
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

import medssl
from medssl import cli
from medssl.cli import training
from medssl.cli.values import keys_of, numbers_of
from medssl.core.errors import ConfigError
from medssl.core.progress import SIGN_OF_LIFE, give_sign_of_life


@pytest.fixture
def run():
    return lambda *arguments: CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


@pytest.fixture
def ended(monkeypatch, capsys):
    """Run the command as a process does: exit code, standard error."""

    def run_main(*arguments):
        monkeypatch.setattr(sys, "argv", ["medssl", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return end.value.code, capsys.readouterr().err

    return run_main


@pytest.fixture
def started(monkeypatch):
    """The commands that would have been started."""
    commands = []

    class Process:
        def __init__(self, command, env):
            commands.append(command)

        def poll(self):
            return 7

        def wait(self):
            return 7

    monkeypatch.setattr(training.subprocess, "Popen", Process)
    return commands


def test_version_is_told(run):
    assert run("--version").stdout == f"medssl {medssl.__version__}\n"


@pytest.mark.parametrize("spelling", ["--dataset", "--dataset_name", "--dataset-name"])
def test_an_option_is_known_in_every_spelling(run, spelling, phantom_dir):
    assert run("check-data", phantom_dir, spelling, "phantom").exit_code == 0


def test_help_spells_options_like_keys_of_bundles(run):
    text = run("review", "--help").stdout
    assert "--open_seconds" in text and "--output_dir" in text
    assert not re.search(r"--\w+-\w+", text)


def test_list_of_commands_says_what_they_do_in_full(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("--help").stdout.splitlines()
    assert max(len(line) for line in lines) <= 80
    assert not [line for line in lines if line.endswith("...") and "COMMAND" not in line]


def test_mistyped_command_and_option_get_the_nearest(ended):
    code, text = ended("predikt")
    assert code == 2 and "Did you mean 'predict'?" in text
    code, text = ended("predict", "scans", "out", "--bundel", "x")
    assert code == 2 and "Did you mean --bundle?" in text


def test_unexpected_error_is_one_sentence_and_debug_shows_more(ended, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("medssl.core.shipped_bundles.bundles_table", fail)
    code, text = ended("bundles")
    assert code == 1 and text.count("\n") == 1 and "ZeroDivisionError: division by zero" in text and "--debug" in text
    monkeypatch.setattr(sys, "argv", ["medssl", "bundles", "--debug"])
    with pytest.raises(ZeroDivisionError):
        cli.main()


def test_debug_is_a_key_of_the_training_wherever_it_stands(ended, started):
    ended("--debug", "train", "gbdl", "--labelled", 4)
    ended("train", "gbdl", "--debug", "--labelled", 4)
    assert [command[-4:] for command in started] == 2 * [["--labelled", "4", "--debug", "true"]]


def test_stopped_command_ends_with_130_and_no_traceback(ended, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("medssl.core.shipped_bundles.bundles_table", stop)
    assert ended("bundles") == (130, "Stopped.\n")


@pytest.mark.parametrize("text", ["8,8,16", "[8,8,16]", "[8, 8, 16]", "(8, 8, 16)", " 8, 8,16 "])
def test_numbers_are_known_in_every_spelling(text):
    assert numbers_of(text) == [8, 8, 16]


@pytest.mark.parametrize("text", ["8,", "eight", "", "8.5,8,8", "[[8,8]]"])
def test_other_texts_are_no_numbers(text):
    with pytest.raises(ConfigError, match="expected whole numbers"):
        numbers_of(text)


def test_keys_have_values_or_are_true():
    extra = ["--labelled", "8", "--window", "-100,250", "--batch-size=2", "--resume", "--train#optimizer#lr", "0.1"]
    keys = keys_of(extra)
    assert keys == {
        "labelled": "8",
        "window": "-100,250",
        "batch_size": "2",
        "resume": "true",
        "train#optimizer#lr": "0.1",
    }


def test_value_without_a_key_is_refused():
    with pytest.raises(ConfigError, match="'16': expected keys"):
        keys_of(["--labelled", "8", "16"])


def test_train_prints_the_stock_command_and_runs_it(run, started, bundles_dir):
    result = run("train", "gbdl", "--overlay", "smoke", "--dataset", "phantom", "--labelled", 4, "--resume")
    configs = bundles_dir / "gbdl" / "configs"
    files = str([str(configs / "train.json"), str(configs / "smoke.json")])
    keys = ["--dataset_name", "phantom", "--labelled", "4", "--resume", "true"]
    assert started == [[sys.executable, "-m", "monai.bundle", "run", "training", "--config_file", files, *keys]]
    assert (
        result.stdout.startswith("python -m monai.bundle run training --config_file ")
        and "--labelled 4" in result.stdout
    )
    assert result.exit_code == 7


def test_evaluate_takes_the_bundle_that_the_run_was_trained_with(run, started, bundles_dir, tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"bundle": "gbdl", "bundle_root": "/moved/away"}))
    (tmp_path / "bundle" / "configs").mkdir(parents=True)
    (tmp_path / "bundle" / "configs" / "inference.json").write_text("{}")
    run("evaluate", tmp_path, "--samples", 50)
    config = str(bundles_dir / "gbdl" / "configs" / "evaluate.json")
    assert started[0][4:] == ["evaluating", "--config_file", config, "--samples", "50", "--output_dir", str(tmp_path)]


def test_evaluate_refuses_another_folder_for_its_results(ended, started, tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"bundle": "gbdl"}))
    code, text = ended("evaluate", tmp_path, "--output_dir", "elsewhere")
    assert code == 1 and not started
    assert "output_dir elsewhere: an evaluation is written into the folder of its run" in text
    assert "Leave --output_dir out." in text


@pytest.mark.parametrize(("facts", "config"), [({}, "scans_evaluate.json"), ({"task": "scenes"}, "evaluate.json")])
def test_a_run_is_evaluated_by_the_configuration_of_its_task(ended, started, tmp_path, facts, config):
    (tmp_path / "run.json").write_text(json.dumps({"bundle": "np_semiseg", **facts}))
    ended("evaluate", tmp_path, "--trust")
    assert Path(started[0][started[0].index("--config_file") + 1]).name == config


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("train", "gbld"), "Did you mean 'gbdl'"),
        (("train", "gbdl", "--overlay", "smok"), "Did you mean 'smoke'"),
        (("sweep", "gbdl", "--output_dir", "x"), "needs numbers of labels"),
        (("sweep", "gbdl", "--output_dir", "x", "--labelled", "few"), "expected whole numbers"),
        (("evaluate", "nothere"), "nothere"),
    ],
)
def test_mistakes_of_a_training_are_told_before_it_starts(ended, started, arguments, reason):
    code, text = ended(*arguments)
    assert code == 1 and reason in text and text.count("\n") == 1 and started == []


def test_waiting_for_monai_is_told_until_the_process_speaks(monkeypatch, tmp_path, capsys):
    sign = tmp_path / "speaks"
    monkeypatch.setattr(training, "LINE_SECONDS", 0.7)
    monkeypatch.setenv(SIGN_OF_LIFE, str(sign))
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    speaking = threading.Timer(1.5, give_sign_of_life)
    speaking.start()
    training._tell_until(sign, process)
    process.kill()
    process.wait()
    assert sign.exists() and "starting MONAI (" in capsys.readouterr().out


def test_rounds_take_a_bundle_by_its_name_and_go_on_to_the_data(ended, tmp_path):
    keys = ("--dataset_name", "folder", "--dataset_dir", tmp_path / "nothing")
    code, text = ended("simulate-review", "rounds", "mcdropout_unet3d", "--output_dir", tmp_path / "rounds", *keys)
    assert code == 1 and "nothing: no such folder" in text
