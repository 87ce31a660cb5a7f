"""Two gloo processes under torchrun train the same weights as one process with the same global batch."""

import os
import re
import subprocess
import sys

from medssl.engine import CheckpointStore


def test_two_processes_equal_one_with_the_same_global_batch(train_smoke, bundle_dir, phantom_dir, tmp_path):
    configs = [str(bundle_dir / "configs" / name) for name in ("train.json", "smoke.json", "ddp.json")]
    keys = {
        "bundle_root": str(bundle_dir),
        "dataset_name": "phantom",
        "dataset_dir": str(phantom_dir),
        "labelled": "3",
        "validation": "1",
        "test": "1",
        "unlabelled": "1",
        "output_dir": str(tmp_path / "two"),
        "mlflow": "False",
        "network_def#dropout": "0.0",  # each process draws its own masks: without dropout the sums must agree
    }
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    command = [*torchrun, "-m", "monai.bundle", "run", "training", "--config_file", str(configs)]
    pairs = [part for key, value in keys.items() for part in (f"--{key}", value)]
    done = subprocess.run(
        [*command, *pairs], env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    sizes = {"labelled": 3, "validation": 1, "test": 1, "unlabelled": 1}
    train_smoke(tmp_path / "one", **sizes, **{"network_def#dropout": 0.0})
    two, one = (CheckpointStore(tmp_path / name / "checkpoints").load_latest()[0]["method"] for name in ("two", "one"))
    assert two.keys() == one.keys()
    # a bias before an instance norm has no effect and a gradient of rounding alone, which Adam blows up to full steps
    telling = [name for name in one if not re.search(r"(blocks|decoder)\.\d+\.\d+\.bias$", name)]
    assert len(telling) == 8
    worst = max(float((two[name] - one[name]).abs().max()) for name in telling)
    assert worst < 1e-4, worst
    assert (tmp_path / "two" / "evaluation" / "per_case.csv").is_file()
