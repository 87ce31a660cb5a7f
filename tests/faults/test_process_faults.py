"""F5 and F10 as a user meets them: the exit code and the text of whole commands."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from medssl.engine import CheckpointStore, RunFolder


@pytest.mark.slow
def test_diverged_training_ends_the_command_with_a_code_and_one_text(bundle_dir, phantom_dir, tmp_path):
    run = tmp_path / "run"
    configs = [str(bundle_dir / "configs" / name) for name in ("train.json", "smoke.json")]
    command = [sys.executable, "-m", "monai.bundle", "run", "training", "--config_file", str(configs)]
    keys = {"dataset_name": "phantom", "dataset_dir": phantom_dir, "output_dir": run, "labelled": 3, "test": 3}
    keys |= {"bundle_root": bundle_dir, "mlflow": False, "learning_rate": 1e30}  # one step of it breaks all weights
    for key, value in keys.items():
        command += [f"--{key}", str(value)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False)
    assert done.returncode == 1, done.stderr
    assert re.search(r"^TrainingDiverged: the loss is (nan|inf) at step 2 \(epoch 1\)", done.stderr, re.MULTILINE)
    assert "Traceback" not in done.stderr
    failure = json.loads((run / "failure.json").read_text())
    split = json.loads((run / "split.json").read_text())
    assert failure["step"] == 2 and len(failure["cases"]) == 2
    assert set(failure["cases"]) <= {case["id"] for case in split["cases"] if case["role"] == "labelled"}
    assert json.loads((run / "run.json").read_text())["status"] == "failed"
    assert CheckpointStore(run / "checkpoints").files() == [], "broken weights are not kept"


SCRIPT = """
import os, signal, sys, time
import torch
from ignite.engine import Events
from torch.utils.data import DataLoader
from medssl.engine import *
from medssl.engine.tracking import NoTracker

class Line(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.slope = torch.nn.Parameter(torch.zeros(1))
    def forward(self, batch):
        return {"loss": ((self.slope - 3) * batch["x"]).square().mean()}

def die():
    open(sys.argv[1] + "/died", "w").write(str(time.time()))
    os.kill(os.getpid(), signal.SIGKILL)

start_process_group()
folder = RunFolder(sys.argv[1] + "/run")
method = Line()
loader = DataLoader([{"x": torch.ones(1)} for _ in range(8)], batch_size=2)
handlers = [RecordProgress(folder, NoTracker()), KeepCheckpoints(folder)]
trainer = MethodTrainer(method, torch.optim.Adam(method.parameters()), loader, 1000, "cpu", train_handlers=handlers)
if os.environ["RANK"] == "1":
    trainer.add_event_handler(Events.EPOCH_STARTED(once=3), die)
trainer.run()
"""


@pytest.mark.slow
def test_torchrun_ends_soon_after_a_process_died_and_the_run_can_be_resumed(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", str(script)]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, timeout=300, check=False)
    ended = time.time()
    assert done.returncode != 0
    assert ended - float(Path(tmp_path / "died").read_text()) < 60
    assert CheckpointStore(tmp_path / "run" / "checkpoints").load_latest()[0]["epoch"] == 2
    assert RunFolder(tmp_path / "run", resume=True).resumed, "nobody holds the folder"
