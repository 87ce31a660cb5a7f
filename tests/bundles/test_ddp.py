"""Two gloo processes under torchrun train the same weights as one process with the same global batch."""

import json
import os
import subprocess
import sys

import pytest

from medssl.bundle import run_bundle
from medssl.engine import CheckpointStore

# each process draws its own masks and latents: without them the sums must agree
DETERMINISTIC = {
    "mcdropout_unet3d": {"network_def#dropout": "0.0", "samples": "0"},
    "teacher_student": {"network_def#dropout": "0.0", "samples": "0", "batch_size": "4"},
    "gbdl": {"network_def#dropout": "0.0", "samples": "0", "variant": "no_z", "batch_size": "4", "max_epochs": "2"},
}


def training_keys(bundle, phantom_dir, output_dir):
    return {
        "bundle_root": str(bundle),
        "dataset_name": "phantom",
        "dataset_dir": str(phantom_dir),
        "labelled": "3",
        "validation": "1",
        "test": "1",
        "unlabelled": "2",
        "output_dir": str(output_dir),
        "runs_dir": str(output_dir.parent),
        "mlflow": "False",
        **DETERMINISTIC[bundle.name],
    }


def configs_of(bundle, *overlays):
    return [str(bundle / "configs" / f"{name}.json") for name in ("train", "smoke", *overlays)]


def run_two_processes(bundle, keys):
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    command = [*torchrun, "-m", "monai.bundle", "run", "training", "--config_file", str(configs_of(bundle, "ddp"))]
    pairs = [part for key, value in keys.items() for part in (f"--{key}", value)]
    done = subprocess.run(
        [*command, *pairs], env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


def stored_method(run):
    return CheckpointStore(run / "checkpoints").load_latest()[0]["method"]


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_two_processes_equal_one_with_the_same_global_batch(name, bundles_dir, phantom_dir, tmp_path):
    bundle = bundles_dir / name
    run_two_processes(bundle, training_keys(bundle, phantom_dir, tmp_path / "two"))
    alone = training_keys(bundle, phantom_dir, tmp_path / "one")
    numbers = {key: int(value) if value.isdigit() else value for key, value in alone.items()}
    run_bundle("training", configs_of(bundle), **{**numbers, "network_def#dropout": 0.0})
    two, one = (stored_method(tmp_path / process) for process in ("two", "one"))
    assert two.keys() == one.keys()
    # a bias before an instance norm has no effect and a gradient of rounding alone, which Adam blows up to full steps
    telling = [key for key in one if key.endswith(("weight", "classifier.bias"))]
    assert len(telling) == (16 if name == "teacher_student" else 8)  # with those of its moving average
    worst = max(float((two[key] - one[key]).abs().max()) for key in telling)
    assert worst < 1e-4, worst
    assert (tmp_path / "two" / "evaluation" / "per_case.csv").is_file()


def test_gbdl_with_its_draws_trains_in_two_processes(bundles_dir, phantom_dir, tmp_path):
    bundle = bundles_dir / "gbdl"
    keys = {**training_keys(bundle, phantom_dir, tmp_path / "two"), "variant": "gbdl", "health_cases": "0"}
    run_two_processes(bundle, keys)
    lines = [json.loads(line) for line in (tmp_path / "two" / "history.jsonl").read_text().splitlines()]
    assert [line["stage"] for line in lines if line["kind"] == "epoch"] == ["latent", "posterior"]
    assert (tmp_path / "two" / "evaluation" / "per_case.csv").is_file()
