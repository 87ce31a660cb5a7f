"""Evaluation of a classifier: error, calibration of its uncertainty, and a table with every picture."""

import csv
import io
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from medssl.files import write_text_atomically
from medssl.metrics.calibration import uce
from medssl.networks.mc_dropout import mc_dropout
from natural_image_ext.data.views import LabelledPictures
from natural_image_ext.methods.step import Classifier, entropy_nats, mean_prediction
from natural_image_ext.networks.np_head import NPHead

BINS = 15


@torch.no_grad()
def predict(network: Classifier, images: Tensor, samples: int = 10) -> Tensor:
    """Mean probabilities (N, C): of T latent vectors with a neural-process head, of T passes where there is dropout."""
    if isinstance(network.head, NPHead):
        return mean_prediction(network.head(network.backbone(images), samples).logits)
    passes = samples if _has_dropout(network) else 1
    with mc_dropout(network):
        return mean_prediction(torch.stack([network(images) for _ in range(passes)]))


def _has_dropout(network: Classifier) -> bool:
    return any(getattr(module, "p", 0) > 0 for module in network.modules() if isinstance(module, torch.nn.Dropout))


@dataclass(frozen=True)
class PictureEvaluation:
    """Predicts `pictures` with the moving average of the weights and writes per_sample.csv and metrics.json.

    Uncertainty is the entropy of the mean prediction in nats. UCE takes it as a share of its largest value, log C.
    """

    network: Classifier
    pictures: LabelledPictures
    classes: tuple[str, ...]
    output_dir: str | Path
    device: torch.device | str = "cpu"
    batch_size: int = 64
    samples: int = 10
    seed: int = 0

    def run(self) -> dict[str, Any]:
        """The metrics, in [0, 1]: `error`, `top5_error` (of more than five classes), `uce`, and those of each class."""
        probs, labels = self._predictions()
        uncertainty = entropy_nats(probs)
        correct = probs.argmax(-1) == labels
        metrics: dict[str, Any] = {
            "pictures": len(labels),
            "error": 1 - correct.double().mean().item(),
            "uce": uce((uncertainty / math.log(len(self.classes))).clamp(0, 1).numpy(), correct.numpy(), BINS),
            "mean_uncertainty_nats": uncertainty.mean().item(),
        }
        if len(self.classes) > 5:
            among = (probs.topk(5, dim=-1).indices == labels.unsqueeze(-1)).any(-1)
            metrics["top5_error"] = 1 - among.double().mean().item()
        metrics["classes"] = {
            name: {
                "accuracy": correct[labels == number].double().mean().item(),
                "mean_uncertainty_nats": uncertainty[labels == number].mean().item(),
            }
            for number, name in enumerate(self.classes)
            if (labels == number).any()
        }
        self._write(probs, labels, uncertainty, metrics)
        return metrics

    def _predictions(self) -> tuple[Tensor, Tensor]:
        """Probabilities (N, C) in double precision, labels (N,)."""
        network = self.network.to(self.device).eval()
        found, labels = [], []
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            for batch in DataLoader(self.pictures, batch_size=self.batch_size):
                found.append(predict(network, batch["image"].to(self.device), self.samples).double().cpu())
                labels.append(batch["label"])
        return torch.cat(found), torch.cat(labels)

    def _write(self, probs: Tensor, labels: Tensor, uncertainty: Tensor, metrics: dict[str, Any]) -> None:
        highest, predicted = probs.max(-1)
        columns = (labels, predicted, highest, uncertainty)
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(["sample", "label", "predicted", "confidence", "uncertainty_nats", "correct"])
        for place, (label, guess, share, unsure) in enumerate(zip(*(np.asarray(c) for c in columns), strict=True)):
            named = (self.classes[label], self.classes[guess])
            writer.writerow([place, *named, f"{share:.6f}", f"{unsure:.6f}", int(label == guess)])
        folder = Path(self.output_dir)
        write_text_atomically(folder / "per_sample.csv", text.getvalue())
        write_text_atomically(folder / "metrics.json", json.dumps(metrics, indent=1))
