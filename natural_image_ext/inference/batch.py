"""Prediction of a folder of pictures: one bad picture does not stop the others."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from medssl.errors import DataError, MedsslError
from medssl.files import write_text_atomically
from medssl.inference.evaluation import write_rows
from natural_image_ext.data.sources import Pictures, pictures_in
from natural_image_ext.inference.predictor import PicturePredictor
from natural_image_ext.methods.classification.step import entropy_nats

COLUMNS = ("sample", "predicted", "confidence", "uncertainty_nats")


def find_pictures(folder: str | Path) -> Pictures:
    """All pictures below `folder`; DataError if there are none."""
    found = pictures_in(Path(folder), -1, Path(folder))
    if not len(found):
        raise DataError(f"{folder}: no picture. Give a folder of pictures with --dataset_dir.")
    return found


@dataclass
class PicturePredictions:
    """Writes predictions.csv, most uncertain first, and failures.json for pictures that cannot be read."""

    predictor: PicturePredictor
    pictures: Pictures
    output_dir: str | Path
    failures: dict[str, str] = field(default_factory=dict)

    def run(self) -> list[dict[str, Any]]:
        """The rows of predictions.csv."""
        readable = self.pictures.take(self._readable())
        probs = self.predictor(readable)
        unsure = entropy_nats(probs)
        rows = [
            {
                "sample": readable.ids[place],
                "predicted": self.predictor.classes[int(probs[place].argmax())],
                "confidence": probs[place].max().item(),
                "uncertainty_nats": unsure[place].item(),
            }
            for place in torch.argsort(unsure, descending=True).tolist()
        ]
        write_rows(Path(self.output_dir) / "predictions.csv", COLUMNS, rows)
        failures = Path(self.output_dir) / "failures.json"
        if self.failures or failures.exists():
            write_text_atomically(failures, json.dumps(self.failures, indent=1))
        print(f"{len(rows)} predicted, {len(self.failures)} failed; results in {self.output_dir}", flush=True)
        return rows

    def _readable(self) -> Sequence[int]:
        places = []
        for place in range(len(self.pictures)):
            try:
                self.pictures.read(place)
                places.append(place)
            except DataError as error:
                self.failures[self.pictures.ids[place]] = str(error)
        return places

    def raise_failures(self) -> None:
        """MedsslError that names the pictures that failed, if any did."""
        if self.failures:
            raise MedsslError(f"{len(self.failures)} pictures failed:\n" + "\n".join(self.failures.values()))
