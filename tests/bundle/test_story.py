"""What a training says at its start and at its end."""

from pathlib import Path

import pytest
import torch
from torch import nn

from medssl.bundle.story import TrainingPlan, commands_after_scans

COUNTS = {"labelled": 3, "unlabelled": 4, "validation": 2, "test": 3}


def plan(**changes):
    facts = {
        "method": "GBDL",
        "data": "phantom in data/phantom",
        "cases": "cases",
        "counts": COUNTS,
        "network": nn.Linear(999, 2),
        "input": "64 x 64 x 16 voxels, 2 patches a step",
        "voxels_per_step": 2 * 64 * 64 * 16,
        "epochs": 5,
        "steps_per_epoch": 7,
        "device": torch.device("cpu"),
        "folder": Path("runs/gbdl"),
        "memory_bytes": 1_200_000_000,
    }
    return TrainingPlan(**{**facts, **changes})


@pytest.fixture(autouse=True)
def memory(monkeypatch):
    monkeypatch.setattr("medssl.bundle.story.available_bytes", lambda device: 20_000_000_000)


def test_plan_is_a_line_a_fact():
    assert plan().lines() == [
        "method   GBDL",
        "data     phantom in data/phantom",
        "split    3 labelled, 4 unlabelled, 2 validation, 3 test cases",
        "network  Linear, 2,000 parameters",
        "input    64 x 64 x 16 voxels, 2 patches a step",
        "length   5 epochs of 7 steps",
        "device   cpu",
        "memory   needs about 1.2 GB of 20 GB free",
        "folder   runs/gbdl",
    ]


@pytest.mark.parametrize(
    ("need", "text"), [(None, "memory   20 GB free"), (5, "memory   needs less than 0.1 GB of 20 GB free")]
)
def test_memory_that_nobody_knows_or_that_is_little_is_not_told(need, text):
    assert text in plan(memory_bytes=need).lines()


@pytest.mark.parametrize(
    ("changes", "is_large"),
    [
        ({}, False),
        ({"epochs": 120, "steps_per_epoch": 36}, False),
        ({"network": nn.Linear(1000, 6000), "voxels_per_step": 4 * 128 * 128 * 32, "epochs": 120}, True),
        ({"network": nn.Linear(1000, 11000), "voxels_per_step": 4 * 32 * 32}, False),  # a large network, a smoke test
    ],
)
def test_only_a_training_that_is_too_large_for_a_cpu_says_that_there_is_no_gpu(changes, is_large, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert plan(**changes).hint().startswith("No GPU was found.") is is_large
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert plan(**changes).hint() == ""


def test_other_processes_of_a_group_say_nothing(monkeypatch, capsys):
    monkeypatch.setenv("RANK", "1")
    plan().tell()
    assert capsys.readouterr().out == ""


def test_commands_can_be_typed_as_they_are():
    assert commands_after_scans(Path("my runs/a"))[0] == "medssl report 'my runs/a'"


def test_a_training_tells_what_it_does_and_what_came_of_it(train_smoke, phantom_dir, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train_smoke(Path("run"), resume=True)
    lines = capsys.readouterr().out.splitlines()
    split = lines.index("split    3 labelled, 4 unlabelled, 2 validation, 3 test cases")
    assert f"data     phantom in {phantom_dir}" in lines[:split]
    assert "network  MCDropoutUNet3D, 3,602 parameters" in lines
    assert "input    64 x 64 x 16 voxels, 2 patches a step" in lines and "length   2 epochs of 2 steps" in lines
    new = lines.index("nothing to resume in run: a new run begins")
    first = next(place for place, line in enumerate(lines) if line.startswith("training: epoch 1/2  loss"))
    table = next(place for place, line in enumerate(lines) if "Dice" in line)
    assert split < new < first < table
    assert lines[-4:] == [
        "The run is in run. Next:",
        "  medssl report run",
        "  medssl review run",
        "  medssl predict SCANS predictions --bundle run",
    ]
    assert not any("No GPU" in line for line in lines)


def test_a_training_without_test_cases_says_so(train_smoke, tmp_path, capsys):
    train_smoke(tmp_path / "run", test=0, max_epochs=1, validation=0)
    out = capsys.readouterr().out
    assert "no test part" in out and "medssl review" not in out
