"""Segmentation of a folder of images: one bad image does not stop the others."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from medssl.core.errors import DataError
from medssl.core.files import write_bytes_atomically
from medssl.core.progress import tracked
from natural_image_ext.data.sources import Pictures
from natural_image_ext.inference.folder import FolderPredictions
from natural_image_ext.inference.scene_predictor import ScenePrediction, ScenePredictor
from natural_image_ext.metrics import SCENE_ENTROPY

COLUMNS = ("sample", SCENE_ENTROPY.name)


@dataclass
class ScenePredictions(FolderPredictions):
    """Writes `<id>_classes.png` and `<id>_entropy.png` (255 for log C) and predictions.csv, most uncertain first."""

    predictor: ScenePredictor
    images: Pictures
    noun = "images"
    verb = "segmented"

    def run(self) -> list[dict[str, Any]]:
        """The rows of predictions.csv; images that cannot be read are in failures.json."""
        folder = Path(self.output_dir)
        rows: list[dict[str, Any]] = []
        for place, name in enumerate(tracked(self.images.ids, "prediction", "images")):
            try:
                prediction = self.predictor(self.images.read(place), name)
            except DataError as error:
                self.failures[name] = str(error)
                continue
            self._write(folder, name, prediction)
            rows.append({"sample": name, SCENE_ENTROPY.name: float(prediction.entropy.mean())})
        rows.sort(key=lambda row: -row[SCENE_ENTROPY.name])
        self.write_table(COLUMNS, rows)
        return rows

    def _write(self, folder: Path, name: str, prediction: ScenePrediction) -> None:
        stem = Path(name).with_suffix("").as_posix()
        grey = prediction.entropy / np.log(len(self.predictor.classes)) * 255
        for kind, values in (("classes", prediction.classes), ("entropy", grey.round().clip(0, 255).astype(np.uint8))):
            buffer = io.BytesIO()
            Image.fromarray(values).save(buffer, "PNG")
            write_bytes_atomically(folder / f"{stem}_{kind}.png", buffer.getvalue())
