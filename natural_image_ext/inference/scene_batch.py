"""Segmentation of a folder of images: one bad image does not stop the others."""

import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from medssl.errors import DataError, MedsslError
from medssl.files import write_bytes_atomically, write_text_atomically
from medssl.inference.evaluation import write_rows
from natural_image_ext.data.sources import Pictures
from natural_image_ext.inference.scene_predictor import ScenePrediction, ScenePredictor

COLUMNS = ("sample", "mean_entropy_nats")


@dataclass
class ScenePredictions:
    """Writes `<id>_classes.png` and `<id>_entropy.png` (255 for log C) and predictions.csv, most uncertain first."""

    predictor: ScenePredictor
    images: Pictures
    output_dir: str | Path
    failures: dict[str, str] = field(default_factory=dict)

    def run(self) -> list[dict[str, Any]]:
        """The rows of predictions.csv; images that cannot be read are in failures.json."""
        folder = Path(self.output_dir)
        rows: list[dict[str, Any]] = []
        for place, name in enumerate(self.images.ids):
            try:
                found = self.predictor(self.images.read(place), name)
            except DataError as error:
                self.failures[name] = str(error)
                continue
            self._write(folder, name, found)
            rows.append({"sample": name, "mean_entropy_nats": float(found.entropy.mean())})
        rows.sort(key=lambda row: -row["mean_entropy_nats"])
        write_rows(folder / "predictions.csv", COLUMNS, rows)
        if self.failures or (folder / "failures.json").exists():
            write_text_atomically(folder / "failures.json", json.dumps(self.failures, indent=1))
        print(f"{len(rows)} segmented, {len(self.failures)} failed; results in {folder}", flush=True)
        return rows

    def _write(self, folder: Path, name: str, found: ScenePrediction) -> None:
        stem = Path(name).with_suffix("").as_posix()
        grey = found.entropy / np.log(len(self.predictor.classes)) * 255
        for kind, values in (("classes", found.classes), ("entropy", grey.round().clip(0, 255).astype(np.uint8))):
            buffer = io.BytesIO()
            Image.fromarray(values).save(buffer, "PNG")
            write_bytes_atomically(folder / f"{stem}_{kind}.png", buffer.getvalue())

    def raise_failures(self) -> None:
        """MedsslError that names the images that failed, if any did."""
        if self.failures:
            raise MedsslError(f"{len(self.failures)} images failed:\n" + "\n".join(self.failures.values()))
