"""Validation during training, of the averaged network on labelled images kept apart: accuracy, or mean IoU."""

import numpy as np
import torch
from ignite.metrics import Accuracy, ConfusionMatrix, MetricsLambda
from monai.engines import SupervisedEvaluator
from monai.inferers import Inferer
from torch import Tensor
from torch.utils.data import DataLoader

from medssl.core.flags import flag
from natural_image_ext.data.scene_views import LabelledScenes
from natural_image_ext.data.scenes import VOID, Scenes
from natural_image_ext.data.sources import Pictures
from natural_image_ext.data.views import LabelledPictures, Views
from natural_image_ext.inference.sampling import SampledInferer
from natural_image_ext.inference.scene_evaluation import iou_of_classes
from natural_image_ext.networks.classifier import Classifier
from natural_image_ext.networks.segmentation import SegmentationNetwork


def classification_validator(
    network: Classifier,
    pictures: Pictures,
    size: int,
    inferer: SampledInferer,
    device: torch.device,
    batch_size: int = 64,
    amp: bool | str = False,
    resize_to: int | None = None,
) -> SupervisedEvaluator:
    """A MONAI evaluator with the metric `accuracy`. In a process group every process validates all pictures.

    size, resize_to: of `Views`.
    """
    plain = Views(size, resize_to=resize_to).plain()
    return SupervisedEvaluator(
        device=device,
        val_data_loader=DataLoader(LabelledPictures(pictures, plain), batch_size=batch_size),
        network=network,
        inferer=inferer,
        decollate=False,
        key_val_metric={"accuracy": Accuracy(output_transform=lambda output: (output["pred"], output["label"]))},
        amp=flag(amp, "amp"),
    )


def scene_validator(
    network: SegmentationNetwork,
    scenes: Scenes,
    size: int | None,
    num_classes: int,
    inferer: Inferer,
    device: torch.device,
    void: int = VOID,
    amp: bool | str = False,
) -> SupervisedEvaluator:
    """A MONAI evaluator with the metric `miou`, over all pixels that have a label."""
    counted = ConfusionMatrix(num_classes, output_transform=_labelled_pixels)
    return SupervisedEvaluator(
        device=device,
        val_data_loader=DataLoader(LabelledScenes(scenes, size, num_classes, void), batch_size=1),
        network=network,
        inferer=inferer,
        decollate=False,
        key_val_metric={"miou": MetricsLambda(_mean_iou, counted)},
        amp=flag(amp, "amp"),
    )


def _labelled_pixels(output: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Probabilities (N, C) and classes (N,) of the pixels that have a label."""
    known = output["label"] != VOID
    return output["pred"].movedim(1, -1)[known], output["label"][known]


def _mean_iou(confusion: Tensor) -> float:
    """As in the evaluation: classes that neither label nor prediction has do not count."""
    return float(np.nanmean(iou_of_classes(confusion.numpy())))
