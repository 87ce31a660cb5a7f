"""What tests of commands need: a command run as its process would run it, and a small folder of scans."""

import logging
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from cli_scans import write_volume

from medssl import cli
from medssl.bundle import run_bundle
from medssl.cli import training


class TrainingInThisProcess:
    """Stands for the process that `medssl train` starts: imports of torch and MONAI are paid once for all tests."""

    def __init__(self, command, env):
        assert command[:4] == [sys.executable, "-m", "monai.bundle", "run"]
        self.run_id, self.arguments = command[4], command[5:]

    def poll(self):
        return 0  # `wait` does it all

    def wait(self):
        from medssl.bundle.command import parsed_value

        pairs = {key[2:]: parsed_value(value) for key, value in zip(*[iter(self.arguments)] * 2, strict=True)}
        files = pairs.pop("config_file")
        hook = sys.excepthook
        try:
            run_bundle(self.run_id, files if isinstance(files, list) else [files], **pairs)
        except Exception as error:
            sys.excepthook(type(error), error, error.__traceback__)
            return 1
        finally:
            sys.excepthook = hook
        return 0


@pytest.fixture
def ended(monkeypatch, capfd):
    """Runs `medssl ARGUMENTS`; what it ended with: `code` and `text`, both outputs without line breaks of tables."""
    monkeypatch.setattr(training, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": TrainingInThisProcess}))

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["medssl", *map(str, arguments)])
        monkeypatch.setattr(logging.getLogger(), "handlers", [])  # those of an earlier command write to its output
        capfd.readouterr()
        with pytest.raises(SystemExit) as end:
            cli.main()
        output = capfd.readouterr()
        return SimpleNamespace(code=end.value.code or 0, text=" ".join(f"{output.out}\n{output.err}".split()))

    return run


@pytest.fixture
def folder(tmp_path):
    """Five scans of 16x16x8 voxels with labels of two structures: `images/case_a.nii.gz`, `labels/case_a.nii.gz` ..."""
    root, rng = tmp_path / "scans", np.random.default_rng(0)
    for name in "abcde":
        label = np.zeros((16, 16, 8), np.uint8)
        label[4:9, 4:9, 2:5], label[10:13, 10:13, 3:6] = 1, 2
        image = (label * 40.0 + rng.normal(0, 5, label.shape)).astype(np.float32)
        write_volume(root / "images" / f"case_{name}.nii.gz", image)
        write_volume(root / "labels" / f"case_{name}.nii.gz", label)
    return root
