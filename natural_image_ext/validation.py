"""Validation during training: error and accuracy of the averaged network on labelled pictures kept apart."""

import torch
from ignite.metrics import Accuracy
from monai.engines import SupervisedEvaluator
from torch.utils.data import DataLoader

from medssl.flags import flag
from natural_image_ext.data.sources import Pictures
from natural_image_ext.data.views import LabelledPictures, Views
from natural_image_ext.inference.sampling import SampledInferer
from natural_image_ext.networks.classifier import Classifier


def classification_validator(
    network: Classifier,
    pictures: Pictures,
    size: int,
    inferer: SampledInferer,
    device: torch.device,
    batch_size: int = 64,
    amp: bool | str = False,
) -> SupervisedEvaluator:
    """A MONAI evaluator with the metric `accuracy`. In a process group every process validates all pictures."""
    return SupervisedEvaluator(
        device=device,
        val_data_loader=DataLoader(LabelledPictures(pictures, Views(size).plain()), batch_size=batch_size),
        network=network,
        inferer=inferer,
        decollate=False,
        key_val_metric={"accuracy": Accuracy(output_transform=lambda output: (output["pred"], output["label"]))},
        amp=flag(amp, "amp"),
    )
