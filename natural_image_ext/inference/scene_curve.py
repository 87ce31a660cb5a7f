"""Time, mIoU and PAvPU of a trained segmentation of scenes against the number of samples T."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from medssl.core.csv_files import write_rows
from medssl.core.distributed import local_device
from medssl.core.errors import ConfigError
from medssl.core.prediction_options import rising_counts
from medssl.core.progress import tracked
from medssl.core.run_files import SAMPLES
from medssl.core.run_folder import read_facts
from medssl.metrics.catalogue import CASE_SECONDS, PAVPU, metric_names
from natural_image_ext.data.scene_splits import read_scene_split
from natural_image_ext.inference.scene_evaluation import SceneEvaluation, kept_settings
from natural_image_ext.inference.scene_predictor import load_scene_predictor
from natural_image_ext.metrics import MIOU, SECONDS_PER_IMAGE

COLUMNS = ("samples", *metric_names((MIOU, PAVPU, CASE_SECONDS)))


def write_scene_curve(run: str | Path, values: Sequence[int], limit: int | None = None, *, trust: bool = False) -> Path:
    """Write samples.csv into the folder of a finished run: a row for each number of samples.

    seconds: of a prediction, mean over the images. limit: only the first test images. Raises ConfigError.
    """
    counts = rising_counts(values)
    scenes = read_scene_split(Path(run) / "split.json").test
    scenes = scenes if limit is None else scenes.take(range(min(limit, len(scenes))))
    if not len(scenes):
        raise ConfigError(f"{run}: no test images to predict. Give --cases above 0.")
    void, kept = int(read_facts(run)["void"]), kept_settings(run)
    rows = []
    for count in tracked(counts, "samples", "numbers of samples"):
        predictor = load_scene_predictor(run, trust=trust, samples=count, device=str(local_device()))
        with tempfile.TemporaryDirectory() as folder:
            metrics = SceneEvaluation(predictor, scenes, folder, void, **kept).run()
        rows.append(
            {
                "samples": count,
                MIOU.name: metrics[MIOU.name],
                PAVPU.name: metrics[PAVPU.name],
                CASE_SECONDS.name: metrics[SECONDS_PER_IMAGE.name],
            }
        )
    path = Path(run) / SAMPLES
    write_rows(path, COLUMNS, rows)
    return path
