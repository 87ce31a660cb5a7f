"""The default configuration is the thesis' full size; on a CPU it builds, has the stated shapes and takes a step."""

import json
import resource

import numpy as np
import pytest

from medssl.bundle import run_bundle
from medssl.data.phantom import draw_phantom
from medssl.data.volumes import write_nifti
from medssl.engine import CheckpointStore

SLICES_FIRST = np.array([[0.0, 0, -1, 0], [0, -1, 0, 0], [-1, 0, 0, 0], [0, 0, 0, 1]])


@pytest.fixture
def kits19_dir(tmp_path):
    """Three cases of 512x512 slices in KiTS19's layout, slices first, made from phantoms."""
    for index in range(3):
        phantom = draw_phantom(index, shape=(64, 64, 40))
        for name, array in (("imaging", phantom.image), ("segmentation", phantom.label)):
            large = array.repeat(8, axis=0).repeat(8, axis=1).transpose(2, 1, 0)[::-1, ::-1, ::-1]
            affine = SLICES_FIRST @ np.diag([3.0, 0.8, 0.8, 1.0])
            write_nifti(tmp_path / f"case_{index:05d}" / f"{name}.nii.gz", large, affine, array.dtype)
    return tmp_path


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_full_size_training_takes_a_step_on_cpu(bundle_dir, kits19_dir, tmp_path):
    run_bundle(
        run_id="only_train",
        config_files=[bundle_dir / "configs" / "train.json"],
        dataset_dir=str(kits19_dir),
        labelled=1,
        test=1,
        output_dir=str(tmp_path / "run"),
        mlflow=False,
        max_epochs=1,
        steps_per_epoch=1,
        num_workers=0,
        only_train=["$@train#trainer.run()"],
    )
    facts = json.loads((tmp_path / "run" / "run.json").read_text())
    assert facts["parameters"] == 9_596_738  # one input channel; 9,598,466 with three
    assert facts["dataset"] == "kits19" and facts["window"] == [-100.0, 250.0]
    state, _ = CheckpointStore(tmp_path / "run" / "checkpoints").load_latest()
    assert state["step"] == 1
    peak_gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory of the process: {peak_gib:.1f} GiB")
