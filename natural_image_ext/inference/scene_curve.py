"""Time, mIoU and PAvPU of a trained segmentation of scenes against the number of samples T."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from medssl.engine.distributed import local_device
from medssl.engine.run_folder import read_facts
from medssl.errors import ConfigError
from medssl.inference.evaluation import write_rows
from medssl.run_files import SAMPLES
from natural_image_ext.data.scene_splits import read_scene_split
from natural_image_ext.inference.scene_evaluation import SceneEvaluation, kept_settings
from natural_image_ext.inference.scene_predictor import load_scene_predictor

COLUMNS = ("samples", "miou", "pavpu", "seconds")


def write_scene_curve(run: str | Path, values: Sequence[int], limit: int | None = None) -> Path:
    """Write samples.csv into the folder of a finished run: a row for each number of samples.

    seconds: of a prediction, mean over the images. limit: only the first test images. Raises ConfigError.
    """
    counts = sorted(set(values))
    if not counts or counts[0] < 1:
        raise ConfigError(f"values {list(values)}: expected numbers of samples from 1 on, for example 1,5,20.")
    scenes = read_scene_split(Path(run) / "split.json").test
    scenes = scenes if limit is None else scenes.take(range(min(limit, len(scenes))))
    if not len(scenes):
        raise ConfigError(f"{run}: no test images to predict. Give --cases above 0.")
    void, kept = int(read_facts(run)["void"]), kept_settings(run)
    rows = []
    for count in counts:
        predictor = load_scene_predictor(run, samples=count, device=str(local_device()))
        with tempfile.TemporaryDirectory() as folder:
            metrics = SceneEvaluation(predictor, scenes, folder, void, **kept).run()
            times = np.loadtxt(Path(folder) / "per_case.csv", delimiter=",", skiprows=1, usecols=6, ndmin=1)
        rows.append({"samples": count, **{key: metrics[key] for key in ("miou", "pavpu")}, "seconds": times.mean()})
    path = Path(run) / SAMPLES
    write_rows(path, COLUMNS, rows)
    return path
