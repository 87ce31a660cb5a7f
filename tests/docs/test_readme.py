"""Every command of the README is run: here, in another test, or by CI. One that no test knows fails."""

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from docs.parsed import wrong_in
from docs.readme import ROOT, block_commands, inline_commands
from typer.testing import CliRunner

from medssl import cli
from medssl.cli import training

README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = block_commands(README)
RUN_HERE = "run here"
COVERED = {  # how each command is run; a path is that of the test that does, in a smaller size
    "make demo": RUN_HERE,
    "make test": ".ci/run",
    "pip wheel . --no-deps": "tests/packaging/conftest.py",
    "pip install medssl-0.1.0-py3-none-any.whl": "tests/packaging/conftest.py",
    "medssl bundles": RUN_HERE,
    "medssl check-data my_data": RUN_HERE,
    "medssl train gbdl --overlay bench --dataset_name folder --dataset_dir my_data --output_dir runs/mine": RUN_HERE,
    "medssl report runs/mine": RUN_HERE,
    "medssl predict new_scans out --bundle runs/mine": RUN_HERE,
    "python -m monai.bundle run training --config_file "
    "\"['bundles/gbdl/configs/train.json','bundles/gbdl/configs/bench.json']\" "
    "--dataset_name folder --dataset_dir my_data --output_dir runs/mine": RUN_HERE,
    "medssl explain labelled": RUN_HERE,
    "medssl --help": RUN_HERE,
    "medssl sweep gbdl --overlay bench --variants gbdl,self_training --labelled 4,16 --seeds 0,1,2 "
    "--output_dir runs/compared --dataset_name folder --dataset_dir my_data": "tests/test_sweep.py",
    "medssl review runs/mine": RUN_HERE,
    "medssl review new_scans --bundle runs/mine --budget 30min": RUN_HERE,
    "medssl label --studies new_scans --bundle runs/mine": "tests/label_app/test_launch.py",
}
OWN_DATA = [command for command in COMMANDS if re.match(r"medssl (check-data|train|report|predict|review) ", command)]


def test_readme_has_at_most_150_lines():
    assert len(README.splitlines()) <= 150


def test_every_command_is_covered_and_no_other_is_said_to_be():
    assert sorted(COVERED) == sorted(set(COMMANDS))
    places = {place for place in COVERED.values() if place != RUN_HERE}
    assert all((ROOT / place).is_file() for place in places)


@pytest.mark.parametrize("command", sorted({*COMMANDS, *inline_commands(README)}))
def test_command_has_options_keys_and_files_that_exist(command):
    assert wrong_in(command, ROOT) == ""


def test_links_lead_to_files():
    links = re.findall(r"\]\((?!https?:)([^)#]+)", README)
    assert len(links) > 30 and not [link for link in links if not (ROOT / link).is_file()]


def test_numbers_of_the_table_of_methods_stand_on_the_pages_that_it_names():
    rows = [line for line in README.splitlines() if line.startswith("|") and "docs/evidence/" in line and "±" in line]
    assert len(rows) == 5
    for row in rows:
        page = (ROOT / re.search(r"\((docs/evidence/[^)]+)\)", row)[1]).read_text(encoding="utf-8")
        for number in re.findall(r"[\d.]+ ± [\d.]+", row):
            assert number in page, row


@pytest.mark.parametrize("command", ["medssl bundles", "medssl explain labelled", "medssl --help"])
def test_commands_without_data_end_well(command):
    assert CliRunner().invoke(cli.app, shlex.split(command)[1:]).exit_code == 0


def test_stock_command_is_the_one_that_train_prints(monkeypatch):
    class Process:
        def __init__(self, _, env):
            pass

        def poll(self):
            return 0

        def wait(self):
            return 0

    monkeypatch.setattr(training.subprocess, "Popen", Process)
    (short,) = [command for command in COMMANDS if command.startswith("medssl train")]
    (stock,) = [command for command in COMMANDS if "monai.bundle" in command]
    printed = CliRunner().invoke(cli.app, shlex.split(short)[1:]).stdout
    assert shlex.split(printed.replace(f"{ROOT}/", "").replace(", ", ",")) == shlex.split(stock)


@pytest.fixture(scope="module")
def folder(phantom_dir, tmp_path_factory):
    """A folder with my_data, of whose scans nine have a label, and new_scans."""
    root = tmp_path_factory.mktemp("readme")
    shutil.copytree(phantom_dir / "images", root / "my_data" / "images")
    (root / "my_data" / "labels").mkdir()
    for label in sorted((phantom_dir / "labels").iterdir())[:9]:
        shutil.copy(label, root / "my_data" / "labels")
    (root / "new_scans").mkdir()
    shutil.copy(sorted((phantom_dir / "images").iterdir())[-1], root / "new_scans")
    return root


def small(command):
    """The command in smoke size, without tracking."""
    words = shlex.split(command.replace("--overlay bench", "--overlay smoke"))
    return [*words, "--mlflow", "false"] if words[1] == "train" else words


@pytest.fixture
def started_here(monkeypatch):
    """`medssl train` runs MONAI's command in this process: nothing is imported twice."""

    class Process:
        def __init__(self, command, env):
            self.arguments = command[command.index("-m") + 2 :]

        def poll(self):
            return 0

        def wait(self):
            monkeypatch.setattr(sys, "argv", ["monai.bundle", *self.arguments])
            runpy.run_module("monai.bundle", run_name="__main__", alter_sys=True)
            return 0

    monkeypatch.setattr(training.subprocess, "Popen", Process)


def test_own_data_goes_the_whole_way_in_the_order_of_the_readme(folder, started_here, monkeypatch):
    names = [command.split()[1] for command in OWN_DATA]
    assert names == ["check-data", "train", "report", "predict", "review", "review"]
    monkeypatch.chdir(folder)
    for command in OWN_DATA:
        result = CliRunner().invoke(cli.app, small(command)[1:], catch_exceptions=False)
        assert result.exit_code == 0, f"{command}\n{result.output}"
    assert Path("runs/mine/report.html").is_file()
    assert list(Path("out").glob("*_entropy.nii.gz"))
    assert Path("runs/mine/review/review.html").is_file()
    assert Path("review/worklist.csv").is_file()


@pytest.mark.slow
def test_demo_runs_in_smoke_size(tmp_path):
    shown = ["make", "--dry-run", "demo", f"DEMO={tmp_path / 'demo'}", "SIZE=smoke", f"PY={sys.executable}"]
    lines = subprocess.run(shown, cwd=ROOT, capture_output=True, text=True, check=True).stdout.replace("\\\n", " ")
    steps = [line for line in lines.splitlines() if "-m monai.bundle" in line or "-m medssl" in line]
    assert len(steps) == 2
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    for step in steps:
        subprocess.run(shlex.split(step), cwd=ROOT, env=environment, check=True)
    assert (tmp_path / "demo" / "report.html").is_file()
