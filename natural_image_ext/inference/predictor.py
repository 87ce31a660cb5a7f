"""From pictures to probabilities: the one path of evaluation and of prediction."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from medssl.core.options import make_options
from medssl.core.progress import work
from medssl.core.seeding import seeded
from medssl.inference.predictor import load_weights, parse_bundle
from natural_image_ext.data.sources import Pictures
from natural_image_ext.data.views import LabelledPictures, Views
from natural_image_ext.inference.sampling import PictureSampling, SampledInferer
from natural_image_ext.networks.classifier import Classifier


@dataclass
class PicturePredictor:
    """A network, the names of its classes and the side of its pictures; weights come from `checkpoint` if given."""

    network: Classifier
    classes: tuple[str, ...]
    size: int
    inferer: SampledInferer = field(default_factory=SampledInferer)
    device: torch.device | str = "cpu"
    checkpoint: str | Path | None = None
    seed: int = 0
    batch_size: int = 64

    def __post_init__(self) -> None:
        make_options(PictureSampling, {"test_batch": self.batch_size})
        if self.checkpoint is not None:
            load_weights(self.network, self.checkpoint)
        self.network.to(self.device)

    def __call__(self, pictures: Pictures) -> Tensor:
        """Probabilities (N, C) in double precision; the same for the same pictures and seed."""
        self.network.eval()
        probs_of_batches = [torch.empty(0, len(self.classes), dtype=torch.double)]
        loader = DataLoader(LabelledPictures(pictures, Views(self.size).plain()), batch_size=self.batch_size)
        with work("prediction", len(pictures), "pictures") as progress:
            for number, batch in enumerate(loader):
                with seeded(self.seed, number):
                    probs_of_batches.append(self.inferer(batch["image"].to(self.device), self.network).double().cpu())
                progress.advance(len(batch["image"]))
        return torch.cat(probs_of_batches)

    def settings(self) -> dict[str, Any]:
        """What a prediction depends on besides picture and weights."""
        return {"samples": self.inferer.samples, "seed": self.seed, "size": self.size, "batch_size": self.batch_size}


def load_picture_predictor(bundle: str | Path, *, trust: bool | str = False, **overrides: Any) -> PicturePredictor:
    """The predictor of a trained bundle or of a run's folder; overrides and `trust` as in `parse_bundle`."""
    return parse_bundle(bundle, trust=trust, **overrides).get_parsed_content("predictor")
