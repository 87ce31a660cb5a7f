"""Prediction of a folder of pictures: one bad picture does not stop the others."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from medssl.core.errors import DataError
from medssl.core.progress import tracked
from medssl.metrics.catalogue import metric_names
from medssl.uncertainty.maps import entropy_nats
from natural_image_ext.data.sources import Pictures, pictures_in
from natural_image_ext.inference.folder import FolderPredictions
from natural_image_ext.inference.predictor import PicturePredictor
from natural_image_ext.metrics import CONFIDENCE, UNCERTAINTY

COLUMNS = ("sample", "predicted", *metric_names((CONFIDENCE, UNCERTAINTY)))


def find_pictures(folder: str | Path) -> Pictures:
    """All pictures below `folder`; DataError if there are none."""
    pictures = pictures_in(Path(folder), -1, Path(folder))
    if not len(pictures):
        raise DataError(f"{folder}: no picture. Give a folder of pictures with --dataset_dir.")
    return pictures


@dataclass
class PicturePredictions(FolderPredictions):
    """Writes predictions.csv, most uncertain first, and failures.json for pictures that cannot be read."""

    predictor: PicturePredictor
    pictures: Pictures

    def run(self) -> list[dict[str, Any]]:
        """The rows of predictions.csv."""
        readable = self.pictures.take(self._readable())
        probs = self.predictor(readable)
        unsure = entropy_nats(probs)
        rows = [
            {
                "sample": readable.ids[place],
                "predicted": self.predictor.classes[int(probs[place].argmax())],
                CONFIDENCE.name: probs[place].max().item(),
                UNCERTAINTY.name: unsure[place].item(),
            }
            for place in torch.argsort(unsure, descending=True).tolist()
        ]
        self.write_table(COLUMNS, rows)
        return rows

    def _readable(self) -> Sequence[int]:
        places = []
        for place in tracked(range(len(self.pictures)), "reading", "pictures"):
            try:
                self.pictures.read(place)
                places.append(place)
            except DataError as error:
                self.failures[self.pictures.ids[place]] = str(error)
        return places
