"""From pictures to probabilities: the one path of evaluation and of prediction."""

from collections.abc import Callable, Iterator
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
from medssl.uncertainty.latent_share import LatentShare, measures_latent
from medssl.uncertainty.maps import mutual_information, predictive_entropy
from natural_image_ext.data.sources import Pictures
from natural_image_ext.data.views import LabelledPictures, Views
from natural_image_ext.inference.sampling import PictureSampling, SampledInferer
from natural_image_ext.networks.classifier import Classifier


@dataclass
class PicturePredictor:
    """A network, the names of its classes and the side of its pictures; weights come from `checkpoint` if given.

    resize_to: the side that pictures are brought to before the square of `size` is cut from their middle; None: `size`.
    """

    network: Classifier
    classes: tuple[str, ...]
    size: int
    inferer: SampledInferer = field(default_factory=SampledInferer)
    device: torch.device | str = "cpu"
    checkpoint: str | Path | None = None
    seed: int = 0
    batch_size: int = 64
    resize_to: int | None = None

    def __post_init__(self) -> None:
        make_options(PictureSampling, {"test_batch": self.batch_size})
        if self.checkpoint is not None:
            load_weights(self.network, self.checkpoint)
        self.network.to(self.device)

    def __call__(self, pictures: Pictures) -> Tensor:
        """Probabilities (N, C) in double precision; the same for the same pictures and seed."""
        batches = self._batches(pictures, lambda images: self.inferer(images, self.network).double().cpu())
        return torch.cat([torch.empty(0, len(self.classes), dtype=torch.double), *batches])

    def with_latent_share(self, pictures: Pictures) -> tuple[Tensor, float | None]:
        """The same probabilities, and how much of their entropy comes from the latent; None of a network without one.

        None, too, where there are no two samples.
        """
        if not measures_latent(self.network, self.inferer.samples):
            return self(pictures), None
        share = LatentShare()
        mean_probs = [torch.empty(0, len(self.classes), dtype=torch.double)]
        for draws in self._batches(pictures, lambda images: self.inferer.draws(images, self.network).cpu()):
            share.add(mutual_information(draws.double()), predictive_entropy(draws.double()))
            mean_probs.append(draws.mean(0).double())
        return torch.cat(mean_probs), share.value

    def _batches(self, pictures: Pictures, predict: Callable[[Tensor], Tensor]) -> Iterator[Tensor]:
        """What `predict` says of every batch of pictures (N, 3, H, W), each with chances of its own."""
        self.network.eval()
        plain = Views(self.size, resize_to=self.resize_to).plain()
        loader = DataLoader(LabelledPictures(pictures, plain), batch_size=self.batch_size)
        with work("prediction", len(pictures), "pictures") as progress:
            for number, batch in enumerate(loader):
                with seeded(self.seed, number):
                    predicted = predict(batch["image"].to(self.device))
                yield predicted
                progress.advance(len(batch["image"]))

    def settings(self) -> dict[str, Any]:
        """What a prediction depends on besides picture and weights."""
        settings = {"samples": self.inferer.samples, "seed": self.seed, "size": self.size}
        resized = {} if self.resize_to is None else {"resize_to": self.resize_to}
        return {**settings, **resized, "batch_size": self.batch_size}


def load_picture_predictor(bundle: str | Path, *, trust: bool | str = False, **overrides: Any) -> PicturePredictor:
    """The predictor of a trained bundle or of a run's folder; overrides and `trust` as in `parse_bundle`."""
    return parse_bundle(bundle, trust=trust, **overrides).get_parsed_content("predictor")
