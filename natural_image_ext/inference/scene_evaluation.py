"""Evaluation of a segmentation of scenes: mean IoU over all pixels, PAvPU, and a table with every image."""

import io
import json
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ignite.distributed as idist
import numpy as np

from medssl.core.csv_files import write_rows
from medssl.core.errors import DataError
from medssl.core.files import write_bytes_atomically, write_text_atomically
from medssl.core.progress import tracked
from medssl.metrics import pavpu
from medssl.metrics.catalogue import CASE_SECONDS, LATENT_SHARE, PAVPU, metric_names
from medssl.uncertainty.latent_share import LatentShare
from natural_image_ext.data.scene_views import centre_of, read_scene
from natural_image_ext.data.scenes import VOID, Scenes
from natural_image_ext.inference.scene_predictor import ScenePrediction, ScenePredictor
from natural_image_ext.metrics import IMAGE_ACCURACY, MIOU, PIXEL_ACCURACY, SCENE_ENTROPY, SECONDS_PER_IMAGE

COLUMNS = ("case", "structure", *metric_names((MIOU, IMAGE_ACCURACY, PAVPU, SCENE_ENTROPY, CASE_SECONDS)))


@dataclass(frozen=True)
class SceneEvaluation:
    """Predicts `scenes` and writes per_case.csv, metrics.json, settings.json and predictions/<id>.npz.

    Prediction and mask are compared on the image's own grid; with crop_to only that many pixels a side of the image's
    centre are predicted (VOC). mIoU is the mean over classes of the IoU of all pixels of all images; per_case.csv has
    the mean over the classes of an image. PAvPU: windows of `pavpu_window` pixels, certain below
    `pavpu_threshold_nats`. Of a neural process metrics.json has the `latent_share`, too.
    """

    predictor: ScenePredictor
    scenes: Scenes
    output_dir: str | Path
    void: int = VOID
    crop_to: int | None = None
    pavpu_window: int = 64
    pavpu_threshold_nats: float = 0.4

    def run(self) -> dict[str, Any]:
        """The metrics, in [0, 1]; the first process of a group does the work."""
        if idist.get_rank() != 0:
            return {}
        if not len(self.scenes):
            print("evaluation: the split has no images to evaluate", flush=True)
            return {}
        folder, number = Path(self.output_dir), len(self.predictor.classes)
        confusion, rows, latent = np.zeros((number, number), dtype=np.int64), [], LatentShare()
        for place in tracked(range(len(self.scenes)), "evaluation", "images"):
            counted, row = self._evaluate(place, folder / "predictions", latent)
            confusion += counted
            rows.append(row)
        ious = iou_of_classes(confusion)
        metrics = {
            MIOU.name: float(np.nanmean(ious)),
            PIXEL_ACCURACY.name: float(np.trace(confusion) / max(1, confusion.sum())),
            PAVPU.name: float(np.nanmean([row[PAVPU.name] for row in rows])),
            SECONDS_PER_IMAGE.name: float(np.mean([row[CASE_SECONDS.name] for row in rows])),
            "images": len(rows),
            "classes": {name: float(iou) for name, iou in zip(self.predictor.classes, ious, strict=True)},
        }
        if latent.cases:
            metrics[LATENT_SHARE.name] = latent.value
        write_rows(folder / "per_case.csv", COLUMNS, rows)
        write_text_atomically(folder / "metrics.json", json.dumps(metrics, indent=1))
        write_text_atomically(folder / "settings.json", json.dumps(self._settings(), indent=1))
        miou, certain = metrics[MIOU.name], metrics[PAVPU.name]
        print(f"evaluation: {len(rows)} images, mIoU {miou:.4f}, PAvPU {certain:.4f}", flush=True)
        return metrics

    def _evaluate(self, place: int, folder: Path, latent: LatentShare) -> tuple[np.ndarray, dict[str, Any]]:
        """Confusion matrix (C, C), label by prediction, and the row of an image; `latent` gets what its latent does."""
        name = self.scenes.ids[place]
        image, mask = read_scene(self.scenes, place, len(self.predictor.classes), self.void)
        image, mask = centre_of(image, mask, self.crop_to)
        label = mask.numpy()
        started = time.perf_counter()
        prediction = self.predictor(image, name)
        seconds = time.perf_counter() - started
        if prediction.information is not None:
            latent.add(prediction.information, prediction.entropy)
        counted = confusion_matrix(prediction.classes, label, len(self.predictor.classes))
        _write(prediction_file(folder, name), prediction)
        row = {
            "case": name,
            "structure": "",
            MIOU.name: float(np.nanmean(iou_of_classes(counted))) if counted.any() else math.nan,
            IMAGE_ACCURACY.name: float(np.trace(counted) / counted.sum()) if counted.any() else math.nan,
            PAVPU.name: pavpu(
                prediction.classes == label,
                prediction.entropy,
                self.pavpu_window,
                uncertainty_threshold=self.pavpu_threshold_nats,
                counted=label != VOID,
            ),
            SCENE_ENTROPY.name: float(prediction.entropy.mean()),
            CASE_SECONDS.name: seconds,
        }
        return counted, row

    def _settings(self) -> dict[str, Any]:
        return {
            **self.predictor.settings(),
            "crop_to": self.crop_to,
            "pavpu_window": self.pavpu_window,
            "pavpu_threshold_nats": self.pavpu_threshold_nats,
            "n_images": len(self.scenes),
        }


def prediction_file(folder: Path, name: str) -> Path:
    """Where the prediction of an image lies."""
    return folder / f"{name.replace('/', '__')}.npz"


def kept_settings(run: str | Path) -> dict[str, Any]:
    """How a run was evaluated: `crop_to`, `pavpu_window` and `pavpu_threshold_nats` of its settings.json."""
    path = Path(run) / "evaluation" / "settings.json"
    if not path.is_file():
        raise DataError(f"{path}: no such file. Give the folder of a finished run.")
    settings = json.loads(path.read_text())
    return {key: settings[key] for key in ("crop_to", "pavpu_window", "pavpu_threshold_nats")}


def confusion_matrix(predicted: np.ndarray, label: np.ndarray, num_classes: int) -> np.ndarray:
    """Pixels by label (rows) and prediction (columns); those without a label (255) are left out."""
    known = label != VOID
    pairs = label[known].astype(np.int64) * num_classes + predicted[known]
    return np.bincount(pairs, minlength=num_classes**2).reshape(num_classes, num_classes)


def iou_of_classes(confusion: np.ndarray) -> np.ndarray:
    """Intersection over union of every class; NaN for one that neither label nor prediction has."""
    both = np.diag(confusion).astype(float)
    either = confusion.sum(0) + confusion.sum(1) - both
    return np.divide(both, either, out=np.full(len(both), np.nan), where=either > 0)


def _write(path: Path, prediction: ScenePrediction) -> None:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, classes=prediction.classes, entropy=prediction.entropy.astype(np.float16))
    write_bytes_atomically(path, buffer.getvalue())
