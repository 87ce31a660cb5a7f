"""Trainings of a sweep in this process: imports of torch and MONAI are paid once for all tests."""

import subprocess
import sys

import pytest

from medssl.bundle import run_bundle
from medssl.bundle.command import parsed_value


@pytest.fixture
def trained_here(monkeypatch):
    """Stands for the processes of a sweep; the commands that were run."""
    commands = []

    def run(command, **_):
        assert command[:4] == [sys.executable, "-m", "monai.bundle", "run"]
        commands.append(command)
        pairs = {key[2:]: parsed_value(value) for key, value in zip(*[iter(command[5:])] * 2, strict=True)}
        files = pairs.pop("config_file")
        hook = sys.excepthook
        try:
            run_bundle(command[4], files if isinstance(files, list) else [files], **pairs)
        finally:
            sys.excepthook = hook
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr("medssl.sweep.training.subprocess.run", run)
    return commands
