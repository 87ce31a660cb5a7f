"""The default configurations of the natural-image bundles take a full-size step on a CPU."""

import json
import resource

import numpy as np
import pytest
from PIL import Image

from medssl.bundle import run_bundle
from medssl.engine import CheckpointStore


def one_step(bundle, folder, **keys):
    run_bundle(
        run_id="only_train",
        config_files=[bundle / "configs" / "train.json"],
        dataset_name="folder",
        output_dir=str(folder),
        mlflow=False,
        max_epochs=1,
        steps_per_epoch=1,
        num_workers=0,
        only_train=["$@train#trainer.run()"],
        **keys,
    )
    state, _ = CheckpointStore(folder / "checkpoints").load_latest()
    peak_gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory of the process: {peak_gib:.1f} GiB")
    return json.loads((folder / "run.json").read_text()), state


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_np_match_takes_a_step_of_64_labelled_and_448_unlabelled_pictures(bundles_dir, picture_dir, tmp_path):
    facts, state = one_step(bundles_dir / "np_match", tmp_path / "run", dataset_dir=str(picture_dir), labelled=9)
    assert facts["parameters"] == 1_468_352 + 57_738 - 7 * (129 + 2 * 32)  # three classes, not ten
    assert state["step"] == 1 and int(state["method"]["network.head.deterministic_bank.count"]) == 1 + 64


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("variant", ["mean_teacher", "u2pl"])
def test_np_semiseg_takes_a_step_of_480_pixels(bundles_dir, tmp_path, variant):
    """Two labelled and two unlabelled images; the thesis' batch of 12 and 12 needs a GPU's memory."""
    rng = np.random.default_rng(0)
    for part in ("images", "masks"):
        (tmp_path / "set" / part).mkdir(parents=True)
    for name in ("a_0", "a_1", "a_2", "a_3", "a_4"):
        Image.fromarray(rng.integers(0, 256, (500, 375, 3), dtype=np.uint8)).save(
            tmp_path / "set/images" / f"{name}.png"
        )
        Image.fromarray(rng.integers(0, 21, (500, 375), dtype=np.uint8)).save(tmp_path / "set/masks" / f"{name}.png")
    facts, state = one_step(
        bundles_dir / "np_semiseg",
        tmp_path / "run",
        dataset_dir=str(tmp_path / "set"),
        labelled=2,
        batch_size=2,
        variant=variant,
        encoder_weights="null",
    )
    assert facts["parameters"] > 23_508_032 + 1_944_533 and state["step"] == 1
    assert int(state["method"]["network.head.context_banks.counts"].min()) > 1
