"""Evaluation of a classifier: error, calibration of its uncertainty, and a table with every picture."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ignite.distributed as idist
import torch
from torch import Tensor

from medssl.core.csv_files import write_rows
from medssl.core.files import write_text_atomically
from medssl.metrics.calibration import uce
from medssl.metrics.catalogue import LATENT_SHARE, UCE, metric_names
from medssl.uncertainty.maps import entropy_nats
from natural_image_ext.data.sources import Pictures
from natural_image_ext.inference.predictor import PicturePredictor
from natural_image_ext.metrics import (
    CONFIDENCE,
    ERROR,
    MEAN_UNCERTAINTY,
    PICTURE_ACCURACY,
    TOP5_ERROR,
    UNCERTAINTY,
)

BINS = 15
TOP = 5
COLUMNS = ("sample", "label", "predicted", *metric_names((CONFIDENCE, UNCERTAINTY, ERROR, TOP5_ERROR)))


@dataclass(frozen=True)
class PictureEvaluation:
    """Predicts `pictures` and writes per_sample.csv, metrics.json and settings.json.

    Uncertainty is the entropy of the mean prediction in nats. UCE takes it as a share of its largest value, log C.
    """

    predictor: PicturePredictor
    pictures: Pictures
    output_dir: str | Path

    def run(self) -> dict[str, Any]:
        """The metrics, in [0, 1]: `error`, `top5_error` (of more than five classes), `uce`, and those of each class;
        of a neural process `latent_share`, too.

        The first process of a group does the work.
        """
        if idist.get_rank() != 0:
            return {}
        if not len(self.pictures):
            print("evaluation: the split has no pictures to evaluate", flush=True)
            return {}
        probs, latent_share = self.predictor.with_latent_share(self.pictures)
        labels = torch.tensor(self.pictures.labels)
        table = _Table(probs, labels)
        metrics = {**table.metrics(), "classes": table.of_classes(self.predictor.classes)}
        if latent_share is not None:
            metrics[LATENT_SHARE.name] = latent_share
        folder = Path(self.output_dir)
        write_rows(folder / "per_sample.csv", table.columns, table.rows(self.pictures.ids, self.predictor.classes))
        write_text_atomically(folder / "metrics.json", json.dumps(metrics, indent=1))
        settings = {**self.predictor.settings(), "uce_bins": BINS, "n_pictures": len(labels)}
        write_text_atomically(folder / "settings.json", json.dumps(settings, indent=1))
        error, gap = metrics[ERROR.name], metrics[UCE.name]
        print(f"evaluation: {len(labels)} pictures, error {error:.4f}, UCE {gap:.4f}", flush=True)
        return metrics


def measure(probs: Tensor, labels: Tensor) -> dict[str, Any]:
    """Number of pictures, error, top-5 error, UCE and mean uncertainty of probabilities (N, C) and labels (N,)."""
    return _Table(probs, labels).metrics()


class _Table:
    """What is measured of probabilities (N, C) and labels (N,)."""

    def __init__(self, probs: Tensor, labels: Tensor) -> None:
        self.labels, self.uncertainty = labels, entropy_nats(probs)
        self.confidence, self.predicted = probs.max(-1)
        self.wrong = self.predicted != labels
        self.largest = math.log(probs.shape[-1])
        self.far = None
        if probs.shape[-1] > TOP:
            self.far = (probs.topk(TOP, dim=-1).indices != labels.unsqueeze(-1)).all(-1)
        self.columns = COLUMNS if self.far is not None else COLUMNS[:-1]

    def metrics(self) -> dict[str, Any]:
        shares = (self.uncertainty / self.largest).clamp(0, 1)
        metrics = {
            "pictures": len(self.labels),
            ERROR.name: self.wrong.double().mean().item(),
            UCE.name: uce(shares.numpy(), (~self.wrong).numpy(), BINS),
            MEAN_UNCERTAINTY.name: self.uncertainty.mean().item(),
        }
        return metrics if self.far is None else {**metrics, TOP5_ERROR.name: self.far.double().mean().item()}

    def of_classes(self, classes: tuple[str, ...]) -> dict[str, dict[str, float]]:
        """Accuracy and mean uncertainty of every class that has pictures."""
        by_class = {}
        for number, name in enumerate(classes):
            chosen = self.labels == number
            if chosen.any():
                by_class[name] = {
                    PICTURE_ACCURACY.name: 1 - self.wrong[chosen].double().mean().item(),
                    MEAN_UNCERTAINTY.name: self.uncertainty[chosen].mean().item(),
                }
        return by_class

    def rows(self, ids: list[str], classes: tuple[str, ...]) -> list[dict[str, Any]]:
        rows = []
        for place, sample in enumerate(ids):
            row = {
                "sample": sample,
                "label": classes[self.labels[place]],
                "predicted": classes[self.predicted[place]],
                CONFIDENCE.name: self.confidence[place].item(),
                UNCERTAINTY.name: self.uncertainty[place].item(),
                ERROR.name: int(self.wrong[place]),
            }
            rows.append(row if self.far is None else {**row, TOP5_ERROR.name: int(self.far[place])})
        return rows
