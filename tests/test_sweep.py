"""A sweep runs every cell once, goes on after failures, and can be run again."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from medssl.errors import ConfigError
from medssl.sweep import Sweep


@pytest.fixture
def grid(tmp_path):
    return Sweep(
        bundle=Path("bundles/mcdropout_unet3d"),
        output=tmp_path,
        labelled=[4, 100],
        seeds=[0, 1],
        overlays=("bench",),
        keys=(("dataset_name", "phantom"),),
    )


@pytest.fixture
def started(monkeypatch):
    """Stands in for the trainings: records each command and finishes its run, unless its name is in `failing`."""
    commands, failing = [], set()

    def run(command, **options):
        commands.append(command)
        folder = Path(command[command.index("--output_dir") + 1])
        status = 1 if folder.name in failing else 0
        (folder / "run.json").write_text(json.dumps({"status": "finished" if status == 0 else "failed"}))
        return subprocess.CompletedProcess(command, status)

    monkeypatch.setattr(subprocess, "run", run)
    return commands, failing


def test_every_combination_is_trained_in_its_own_folder_with_all_keys(grid, started):
    folders = grid.run()
    assert [folder.name for folder in folders] == [
        f"mcdropout_unet3d_{labelled}_seed{seed}" for labelled in (4, 100) for seed in (0, 1)
    ]
    command = started[0][0]
    assert command[1:5] == ["-m", "monai.bundle", "run", "training"]
    configs = command[command.index("--config_file") + 1]
    assert "configs/train.json" in configs and "configs/bench.json" in configs
    pairs = dict(zip(command[7::2], command[8::2], strict=True))
    assert pairs["--dataset_name"] == "phantom" and pairs["--labelled"] == "4" and pairs["--resume"] == "true"


def test_finished_runs_are_not_trained_again(grid, started):
    grid.run()
    started[0].clear()
    assert len(grid.run(jobs=2)) == 4 and started[0] == []


def test_other_keys_for_the_same_folder_are_refused(grid, started):
    grid.run()
    with pytest.raises(ConfigError, match="other keys"):
        replace(grid, overlays=("smoke",)).run()


def test_a_failure_is_named_and_only_that_cell_is_left(grid, started):
    started[1].add("mcdropout_unet3d_4_seed1")
    with pytest.raises(ConfigError, match=r"1 of 4 trainings failed; see .*4_seed1/training\.log"):
        grid.run()
    started[0].clear()
    started[1].clear()
    grid.run()
    assert [Path(command[command.index("--output_dir") + 1]).name for command in started[0]] == [
        "mcdropout_unet3d_4_seed1"
    ]
